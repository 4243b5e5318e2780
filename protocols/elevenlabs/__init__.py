"""ElevenLabs' protocol on the studio's services, so that its SDKs and the programs built on them work unmodified."""

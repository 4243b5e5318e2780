"""Fish Audio's protocol on the studio's services, so that its SDKs and integrations work unmodified."""

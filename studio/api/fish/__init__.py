"""Fish Audio's own protocol over the studio's services, so that its SDKs and integrations work here unmodified."""

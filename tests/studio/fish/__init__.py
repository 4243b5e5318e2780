"""Fish Audio's protocol on a wire, with the messages that its clients were seen to send."""

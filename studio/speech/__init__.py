"""Speaking: what is asked for, the plan of it, and the sound while it is made."""

"""Text in, speech out: what is spoken, told and refused, over every route that speaks."""

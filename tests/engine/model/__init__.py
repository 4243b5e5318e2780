"""Tests of the models in plain torch: prompts, sampling, the dual AR against upstream's."""

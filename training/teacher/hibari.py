"""A second, fast teacher for one voice: hibari, a small model distilled from Kokoro's af_heart, on one CPU core.

The package hibari-tts (Apache-2.0) has its graph and converts its predictions to a waveform. It is some seventy times
cheaper than Kokoro, so that the default voice can speak every prompt.
"""

from __future__ import annotations

import numpy as np

from training.teacher.kokoro import Spoken

VOICE = "af_heart"
"""The Kokoro voice from which it was distilled."""
LENGTHS = "/Cast_32_output_0"
"""The node that returns each token's duration in units of 600 samples."""


class Hibari:
    """The graph in onnxruntime with one thread; its tokens are Kokoro's."""

    def __init__(self, seed: int) -> None:
        import hibari.tts
        import onnx
        import onnxruntime

        graph = onnx.load(hibari.tts.voice_path(hibari.tts.DEFAULT))
        graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(LENGTHS))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._wave = hibari.tts.dsp.synth
        self._noise = np.random.default_rng(seed)

    def speak(self, tokens: np.ndarray, speed: float = 1.0) -> Spoken:
        """Speak tokens (n,), without padding; speed 2 is twice as fast."""
        inputs = {"ids": np.array([[0, *tokens, 0]], np.int64), "speed": np.array([speed], np.float32)}
        *spectra, lengths = self._session.run(None, inputs)
        audio = self._wave(*(spectrum[0] for spectrum in spectra), self._noise)
        return Spoken(audio.astype(np.float32), lengths.reshape(-1).astype(np.int64))

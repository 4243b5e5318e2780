"""The DAC codec of S2: audio to codes, codes to audio, whole or streamed, with the checkpoint's own tensor names."""

from engine.codec.codec_config import CodecConfig, Precision, TransformerConfig
from engine.codec.codec_layers import StreamState
from engine.codec.load import ONLY_DECODES, ONLY_ENCODES, fingerprint, load_codec, part_on
from engine.codec.model import Codec

__all__ = [
    "ONLY_DECODES", "ONLY_ENCODES", "Codec", "CodecConfig", "Precision", "StreamState", "TransformerConfig",
    "fingerprint", "load_codec", "part_on",
]  # fmt: skip

"""Pipecat's service for ElevenLabs: two sentences through a pipeline, with their words."""

import asyncio
import sys

from pipecat.frames.frames import EndFrame, Frame, TTSAudioRawFrame, TTSSpeakFrame, TTSStoppedFrame, TTSTextFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

RACHEL = "21m00Tcm4TlvDq8ikWAM"


class Listener(FrameProcessor):
    """Counts the audio that it receives, and keeps the words."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.words: list[str] = []
        self.stopped = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.seconds += len(frame.audio) / 2 / frame.sample_rate
        if isinstance(frame, TTSTextFrame):
            self.words += frame.text.split()
        if isinstance(frame, TTSStoppedFrame):
            self.stopped.set()
        await self.push_frame(frame, direction)


async def main(url: str) -> None:
    service = ElevenLabsTTSService(
        api_key="any",
        url=url.replace("http", "ws", 1) + "/elevenlabs",
        settings=ElevenLabsTTSService.Settings(voice=RACHEL),
    )
    listener = Listener()
    task = PipelineTask(Pipeline([service, listener]))

    async def talk() -> None:
        for text in ("Hello there, this is a test.", "And this is another one."):
            listener.stopped.clear()
            before = listener.seconds
            await task.queue_frame(TTSSpeakFrame(text))
            await asyncio.wait_for(listener.stopped.wait(), 60)
            print("spoken:", round(listener.seconds - before, 2), "s,", listener.words)
            assert listener.seconds - before > 0.5, "there is no sound"
            assert listener.words[-1] == text.split()[-1], "there are no words"
        await task.queue_frame(EndFrame())

    await asyncio.gather(PipelineRunner(handle_sigint=False).run(task), talk())


asyncio.run(main(sys.argv[1]))

// Writes a request as source code, and as settings for other programs. It only produces text.

const KEY = "YOUR_KEY"; // placeholder, for studios that require a key
const CLIP = "clip.wav"; // a recording is too long for a listing: the program reads it from this file

const indent = (/** @type {string} */ text, /** @type {number} */ by) => text.replaceAll("\n", `\n${" ".repeat(by)}`);

/**
 * @param {Record<string, any>} request
 */
function parts(request) {
  const { ref_audio: clip, ...rest } = request;
  return { hasClip: clip !== undefined, rest };
}

/**
 * The words of a dialogue's turns, each with the index of its voice in the cast. A line without a name continues a turn.
 *
 * @param {Record<string, any>} request
 */
function turns({ input, cast }) {
  const names = Object.keys(cast);
  /** @type {[number, string][]} */
  const found = [];
  for (const line of input.split("\n")) {
    const name = line.slice(0, line.indexOf(":")).trim();
    const last = found.at(-1);
    if (names.includes(name) || !last) found.push([Math.max(names.indexOf(name), 0), line.slice(line.indexOf(":") + 1).trim()]);
    else last[1] += ` ${line.trim()}`;
  }
  return found;
}

/**
 * request: the body of POST /v1/audio/speech; base: the studio's address without a trailing slash; keyed: whether it needs a key.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function curl(request, base, keyed) {
  const { hasClip, rest } = parts(request);
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = keyed ? `-H 'Authorization: Bearer ${KEY}' ` : "";
  const head = `curl ${base}/v1/audio/speech \\\n  ${key}-H 'Content-Type: application/json' -o take.wav`;
  const json = JSON.stringify(rest, null, 2);
  if (!hasClip) return `${head} -d ${quoted(json)}`;
  const opening = `${json.slice(0, -2)},\n  "ref_audio": "data:audio/wav;base64,`;
  return `{ printf %s ${quoted(opening)}; base64 < ${CLIP} | tr -d '\\n'; printf '"}'; } |\n  ${head} -d @-`;
}

/**
 * JSON strings and numbers are also valid Python.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function python(request, base, keyed) {
  const { hasClip, rest } = parts(request);
  const { input, voice, response_format: format, ...more } = rest;
  const extras = Object.entries(more).map(([name, value]) => `"${name}": ${JSON.stringify(value)},`);
  if (hasClip) extras.push('"ref_audio": f"data:audio/wav;base64,{clip}",');
  const reading = hasClip ? `clip = base64.b64encode(open("${CLIP}", "rb").read()).decode()\n` : "";
  return `${hasClip ? "import base64\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="${keyed ? KEY : "none"}")
${reading}with client.audio.speech.with_streaming_response.create(
    model="tts-1",
    voice=${JSON.stringify(voice ?? "alloy")},
    input=${JSON.stringify(input)},
    response_format=${JSON.stringify(format)},
    extra_body={
        ${extras.join("\n        ")}
    },
) as speech:
    speech.stream_to_file("take.wav")
`;
}

const FISH_FORMATS = ["wav", "pcm", "mp3", "opus"];

/**
 * Fish Audio's SDK supports neither a seed nor top_k.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function fishSdk(request, base, keyed) {
  const { input, voice, cast, response_format: format, ref_audio: clip, ref_text: words, speed, temperature, top_p } = request;
  const hasClip = clip !== undefined;
  const clips = `[ReferenceAudio(audio=open("${CLIP}", "rb").read(), text=${JSON.stringify(words ?? "")})]`;
  const text = cast ? turns(request).map(([number, said]) => `<|speaker:${number}|>${said}`).join("") : input;
  const named = cast ? `${JSON.stringify(Object.values(cast))},  # of which the SDK warns, but sends it` : `${JSON.stringify(voice ?? "alloy")},`;
  const spoken = hasClip ? `references=${clips},` : `reference_id=${named}`;
  const known = FISH_FORMATS.includes(format) ? format : "mp3";
  const sampling = Object.entries({ temperature, top_p }).filter(([, value]) => value !== undefined);
  const chosen = sampling.map(([name, value]) => `, ${name}=${JSON.stringify(Math.min(value, 1))}`).join("");
  return `from fishaudio import FishAudio  # pip install fish-audio-sdk
from fishaudio.types import ${hasClip ? "ReferenceAudio, " : ""}TTSConfig

client = FishAudio(api_key="${keyed ? KEY : "none"}", base_url="${base}")
audio = client.tts.convert(
    text=${JSON.stringify(text)},
    ${spoken}
    speed=${JSON.stringify(Math.min(Math.max(speed ?? 1, 0.5), 2))},
    config=TTSConfig(format="${known}"${chosen}),
)
open("take.${known}", "wb").write(audio)
`;
}

/** ElevenLabs' names of the formats. @type {Record<string, string>} */
const ELEVEN_FORMATS = { wav: "wav_44100", mp3: "mp3_44100_128", opus: "opus_48000_128", pcm: "pcm_24000" };

/**
 * ElevenLabs' SDK has no top_p and top_k; its stability is the temperature, and its dialogues have no speed.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function elevenSdk(request, base, keyed) {
  const { input, voice, cast, response_format: format, ref_audio: clip, speed, seed, temperature } = request;
  const known = format in ELEVEN_FORMATS ? format : "mp3";
  const stability = Math.min(Math.max((1.1 - (temperature ?? 0.8)) / 0.6, 0), 1);
  const hint = clip === undefined ? "" : "  # save your recording as a voice, and name it here";
  const rest = `output_format="${ELEVEN_FORMATS[known]}",${seed === undefined ? "" : `\n    seed=${seed},`}`;
  const voices = Object.values(cast ?? {}).map((name) => JSON.stringify(name));
  const inputs = cast ? turns(request).map(([number, said]) => `        DialogueInput(voice_id=${voices[number]}, text=${JSON.stringify(said)}),\n`) : [];
  const call = cast
    ? `dialogue.convert(
    inputs=[
${inputs.join("")}    ],
    ${rest}`
    : `speech.convert(
    ${JSON.stringify(voice ?? "alloy")},${hint}
    text=${JSON.stringify(input)},
    ${rest}
    voice_settings=VoiceSettings(speed=${speed ?? 1}, stability=${Number(stability.toFixed(3))}),`;
  return `from elevenlabs import ${cast ? "DialogueInput" : "VoiceSettings"}  # pip install elevenlabs
from elevenlabs.client import ElevenLabs

client = ElevenLabs(api_key="${keyed ? KEY : "none"}", base_url="${base}/elevenlabs")
audio = client.text_to_${call}
)
open("take.${known}", "wb").write(b"".join(audio))
`;
}

const MCP_FORMATS = ["mp3", "wav", "opus", "flac", "aac"];

/**
 * The settings of an agent, and the call that it then makes.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function mcp(request, base, keyed) {
  const { input, voice, cast, speed, seed, response_format: format } = request;
  const server = { type: "http", url: `${base}/mcp`, ...(keyed ? { headers: { Authorization: `Bearer ${KEY}` } } : {}) };
  const call = { text: input, voice, cast, speed, seed, format: MCP_FORMATS.includes(format) ? format : "mp3" };
  return `// The settings of Cursor, Claude Code and other agents:
${JSON.stringify({ mcpServers: { voice: server } }, null, 2)}

// The call, if you ask such an agent to say this text:
${JSON.stringify({ name: "speak", arguments: call }, null, 2)}
`;
}

/**
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function javascript(request, base, keyed) {
  const { hasClip, rest } = parts(request);
  const json = JSON.stringify(rest, null, 2);
  const body = hasClip ? `${json.slice(0, -2)},\n  "ref_audio": clip // a data: URL of your recording\n}` : json;
  return `const answer = await fetch("${base}/v1/audio/speech", {
  method: "POST",
  headers: { ${keyed ? `Authorization: "Bearer ${KEY}", ` : ""}"Content-Type": "application/json" },
  body: JSON.stringify(${indent(body, 2)}),
});
if (!answer.ok) throw new Error((await answer.json()).error.message);
const take = await answer.blob(); // answer.body streams while it is made
`;
}

/**
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function gradioClient(request, base, keyed) {
  const { hasClip, rest } = parts(request);
  const { input, response_format: _always, ...more } = rest;
  const words = request.cast ? { script: input } : { text: input };
  const given = Object.entries({ ...words, ...more }).map(([name, value]) => `${name}=${JSON.stringify(value)},`);
  if (hasClip) given.push(`ref_audio=handle_file("${CLIP}"),`);
  return `from gradio_client import Client${hasClip ? ", handle_file" : ""}

client = Client("${base}/"${keyed ? `, headers={"Authorization": "Bearer ${KEY}"}` : ""})
file, take = client.predict(
    ${given.join("\n    ")}
    api_name="${request.cast ? "/dialogue" : "/synthesize"}",
)
print(file, take)
`;
}

/**
 * JSON strings are also valid YAML.
 *
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function homeAssistant(request, base, keyed) {
  const { voice, input, speed, seed, temperature, top_p, top_k } = request;
  const extra = JSON.stringify({ temperature, top_p, top_k, ...(seed === undefined ? {} : { seed }) });
  return `# Wyoming streams the reply while it is written: start the studio with STUDIO_WYOMING=tcp://0.0.0.0:10200, and add
# the integration "Wyoming Protocol" with its host and port 10200. This protocol has no keys.
# Or, over HTTP, once: add the integration "OpenAI TTS" (openai_tts, from HACS) with
#   API key: ${keyed ? KEY : "none"}
#   endpoint: ${base}/v1/audio/speech
#   model: tts-1, voice: ${voice ?? "alloy"}
#   extra payload: ${extra}
# It gives an entity such as tts.openai_tts. Then, in configuration.yaml:
script:
  say_with_the_studio:
    sequence:
      - action: tts.speak
        target:
          entity_id: tts.openai_tts
        data:
          media_player_entity_id: media_player.living_room
          message: ${JSON.stringify(input)}
          options:
            voice: ${JSON.stringify(voice ?? "alloy")}
            speed: ${speed ?? 1}
`;
}

/**
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function openWebui(request, base, keyed) {
  return `# Admin Panel > Settings > Audio > Text-to-Speech, or these variables of its container:
AUDIO_TTS_ENGINE=openai
AUDIO_TTS_OPENAI_API_BASE_URL=${base}/v1
AUDIO_TTS_OPENAI_API_KEY=${keyed ? KEY : "none"}
AUDIO_TTS_MODEL=tts-1
AUDIO_TTS_VOICE=${request.voice ?? "alloy"}
# Under Docker, localhost is the container itself: name the studio's machine instead.
`;
}

/**
 * @param {Record<string, any>} request
 * @param {string} base
 * @param {boolean} keyed
 */
function sillyTavern(request, base, keyed) {
  return `1. Extensions > TTS > Select TTS Provider: OpenAI Compatible
2. Provider Endpoint: ${base}/v1/audio/speech
3. API Key: ${keyed ? KEY : "leave empty"}
4. Model: tts-1
5. Available Voices: ${request.voice ?? "alloy"}   (ids, separated by commas)
6. Press Reload, then give each character its voice in the voice map.
`;
}

const BIG_SEED = /(seed"?(?:: ?|=))"(\d{16,})"/g; // kept as its digits, since JavaScript would round it

/** Like `write`, with a large seed as a number; raw: of a language that rounds it. @param {typeof curl} write */
const exact = (write, raw = "$2") => (/** @type {Parameters<typeof curl>} */ ...given) => write(...given).replace(BIG_SEED, `$1${raw}`);

/** The functions above by tab label, in the order of the dialog's tabs. */
export const SNIPPETS = {
  curl: exact(curl),
  "Python, OpenAI SDK": exact(python),
  "Python, Fish SDK": fishSdk,
  "Python, ElevenLabs SDK": elevenSdk,
  JavaScript: exact(javascript, 'JSON.rawJSON("$2")'),
  gradio_client: exact(gradioClient),
  "Home Assistant": exact(homeAssistant),
  "Open WebUI": openWebui,
  SillyTavern: sillyTavern,
  "Agents, MCP": exact(mcp),
};

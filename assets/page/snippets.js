// A request as a program of one's own: curl, Python with the OpenAI SDK, JavaScript, gradio_client. It only writes text.

const CLIP = "clip.wav"; // a recording cannot stand in a listing: the program reads it from a file

const indent = (text, by) => text.replaceAll("\n", `\n${" ".repeat(by)}`);

function parts(request) {
  const { ref_audio: clip, ...rest } = request;
  return { hasClip: clip !== undefined, rest };
}

/** request: the body of POST /v1/audio/speech; base: the studio's address without a slash at the end. */
function curl(request, base) {
  const { hasClip, rest } = parts(request);
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const head = `curl ${base}/v1/audio/speech \\\n  -H 'Content-Type: application/json' -o take.wav`;
  const json = JSON.stringify(rest, null, 2);
  if (!hasClip) return `${head} -d ${quoted(json)}`;
  const opening = `${json.slice(0, -2)},\n  "ref_audio": "data:audio/wav;base64,`;
  return `{ printf %s ${quoted(opening)}; base64 < ${CLIP} | tr -d '\\n'; printf '"}'; } |\n  ${head} -d @-`;
}

/** JSON strings and numbers are Python's too. */
function python(request, base) {
  const { hasClip, rest } = parts(request);
  const { input, voice, response_format: format, ...more } = rest;
  const extras = Object.entries(more).map(([name, value]) => `"${name}": ${JSON.stringify(value)},`);
  if (hasClip) extras.push('"ref_audio": f"data:audio/wav;base64,{clip}",');
  const reading = hasClip ? `clip = base64.b64encode(open("${CLIP}", "rb").read()).decode()\n` : "";
  return `${hasClip ? "import base64\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="none")
${reading}with client.audio.speech.with_streaming_response.create(
    model="tts-1",
    voice=${JSON.stringify(voice ?? "clip")},
    input=${JSON.stringify(input)},
    response_format=${JSON.stringify(format)},
    extra_body={
        ${extras.join("\n        ")}
    },
) as speech:
    speech.stream_to_file("take.wav")
`;
}

function javascript(request, base) {
  const { hasClip, rest } = parts(request);
  const json = JSON.stringify(rest, null, 2);
  const body = hasClip ? `${json.slice(0, -2)},\n  "ref_audio": clip // a data: URL of your recording\n}` : json;
  return `const answer = await fetch("${base}/v1/audio/speech", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(${indent(body, 2)}),
});
if (!answer.ok) throw new Error((await answer.json()).error.message);
const take = await answer.blob(); // answer.body streams while it is made
`;
}

function gradioClient(request, base) {
  const { hasClip, rest } = parts(request);
  const { input, response_format: _always, ...more } = rest;
  const words = request.cast ? { script: input } : { text: input };
  const given = Object.entries({ ...words, ...more }).map(([name, value]) => `${name}=${JSON.stringify(value)},`);
  if (hasClip) given.push(`ref_audio=handle_file("${CLIP}"),`);
  return `from gradio_client import Client${hasClip ? ", handle_file" : ""}

client = Client("${base}/")
file, take = client.predict(
    ${given.join("\n    ")}
    api_name="${request.cast ? "/dialogue" : "/synthesize"}",
)
print(file, take)
`;
}

/** Label to writer, in the order of the dialog's tabs. */
export const SNIPPETS = { curl, "Python, OpenAI SDK": python, JavaScript: javascript, gradio_client: gradioClient };

// Requests to the server that this page came from, below the same token.
const root = new URL(".", location.href);

export const tab = Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36)).join("");

const options = (body, signal) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

export const get = async (path) => {
  const answer = await fetch(new URL(path, root));
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};

export const post = async (path, body) => {
  const answer = await fetch(new URL(path, root), options(body));
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};

// Sends a request and hears its events one by one: `hear(name, data)`. A request that a newer one replaces ends in silence.
export const stream = async (path, body, hear, signal) => {
  const answer = await fetch(new URL(path, root), options(body, signal));
  if (answer.status === 409) return;
  if (!answer.ok) throw new Error(await answer.text());
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, name, data] = part.match(/^event: (.*)\ndata: (.*)$/s) ?? [];
      if (name) hear(name, JSON.parse(data));
    }
  }
};

/** @file Clients of a server, as a process of their own: each streams one completion after the other, until the process ends. */
const [url, clients, tokens] = process.argv.slice(2) as [string, string, string];

/** Reads a completion to its end. */
async function complete(prompt: string, maxTokens: number): Promise<void> {
  const body = JSON.stringify({ prompt, max_tokens: maxTokens, temperature: 0, stream: true });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(await response.text());
  for await (const _ of response.body!);
}

async function client(number: number): Promise<never> {
  // Rows end one after the other, as they do where lengths differ.
  let count = 1 + Math.ceil((Number(tokens) * (number + 1)) / (Number(clients) + 1));
  for (let i = 0; ; i++) {
    await complete(`${number} ${i}`, count);
    count = Number(tokens);
  }
}

await Promise.all(Array.from({ length: Number(clients) }, (_, i) => client(i)));

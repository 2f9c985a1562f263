import { expect, test } from 'vitest';
import { serve } from '../../../src/trained/index.js';
import { endlessRun } from './endlessRun.js';

/** Texts of a stream's events. */
async function eventTexts(url: string, maxTokens: number): Promise<string[]> {
  const response = await fetch(`${url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ prompt: 'x', max_tokens: maxTokens, stream: true }),
  });
  const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.map((event) => JSON.parse(event.slice(6)).choices[0].text);
}

test('tokens that come faster than clients read share events, but for the first', async () => {
  const server = await serve(endlessRun(0), {
    ...{ host: 'localhost', port: 0, maxBody: 1000, maxWaiting: 1, log: () => {} },
  });
  const texts = await eventTexts(server.url, 60);
  expect(texts.join('')).toBe('a'.repeat(60));
  expect(texts[0]).toBe('a');
  // The last event has the reason of the end alone.
  expect(texts.at(-1)).toBe('');
  expect(texts.length).toBeLessThan(45);
  expect(Math.max(...texts.map(({ length }) => length))).toBeGreaterThan(1);
  await server.close(0);
});

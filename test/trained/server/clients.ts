/** @file Clients that attack a server, by kind: what each sends, and whether it reads. A further kind is a further row. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { opened, posted } from './rawClient.js';

const path = '/v1/completions';
const prompts = (count: number) => Array(count).fill('1 and ');
const asked = posted(path, { prompt: prompts(2), max_tokens: 8 });
const streamed = posted(path, { prompt: prompts(2), max_tokens: 8, stream: true });
const chunked = 'transfer-encoding: chunked';
const half = (text: string) => text.slice(0, Math.floor(text.length / 2));

/** Opens a connection that reads nothing. */
async function unread(url: string, sent: string): Promise<Socket> {
  return (await opened(url, sent)).pause();
}

/** Sends a text a few bytes at a time, as long as the connection is open. */
async function trickled(url: string, sent: string): Promise<Socket> {
  const socket = await opened(url);
  void (async () => {
    for (let at = 0; at < sent.length && !socket.destroyed; at += 7) {
      socket.write(sent.slice(at, at + 7));
      await sleep(5);
    }
  })();
  return socket;
}

/** Kinds of clients; none of them ends its connection. */
export const clients = {
  silent: (url) => opened(url),
  'half a request line': (url) => opened(url, 'POST /v1/comp'),
  'half its headers': (url) => opened(url, 'POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconte'),
  'half a body': (url) => opened(url, asked.slice(0, -5)),
  'half a chunk': (url) =>
    opened(url, `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${chunked}\r\n\r\nff\r\n{`),
  slow: (url) => trickled(url, asked),
  pipelined: (url) => unread(url, asked.repeat(16)),
  'pipelined streams': (url) => unread(url, streamed.repeat(4)),
  'pipelined, the last one cut': (url) => unread(url, asked.repeat(3) + half(asked)),
  'an answer unread': (url) => unread(url, asked),
  'a stream unread': (url) => unread(url, streamed),
  'idle after an answer': async (url) => (await opened(url, asked)).resume(),
  'no HTTP': (url) => opened(url, '\x16\x03\x01\x02\x00'),
  'an answer, then no HTTP': (url) => opened(url, `${asked}\0\0\0\0`),
  upgrade: (url) =>
    opened(
      url,
      'GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    ),
} as const satisfies Record<string, (url: string) => Promise<Socket>>;

/** Drawn kinds. */
export const kinds = fc.constantFrom(...(Object.keys(clients) as (keyof typeof clients)[]));

/** Values of any type, ugly ones among them. */
const value = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    1,
    1e308,
    2 ** 53,
    '',
    'a',
    '\0',
    '\u{1f600}',
    [],
    {},
    [[]],
    [null],
  ),
  fc.constantFrom<unknown>(
    'x'.repeat(3000),
    '\ud800',
    { __proto__: null, constructor: 1 },
    Array(99).fill('a'),
  ),
  fc.jsonValue(),
  fc.integer({ min: 1, max: 6000 }).map((depth) => new Raw('['.repeat(depth) + ']'.repeat(depth))),
);

/** JSON that JSON.stringify would not write. */
class Raw {
  constructor(readonly text: string) {}
}

const fields = [
  ...['model', 'prompt', 'max_tokens', 'temperature', 'top_p', 'top_k', 'stop', 'seed', 'stream', 'user'],
  ...[
    'stream_options',
    'n',
    'best_of',
    'echo',
    'logprobs',
    'suffix',
    'logit_bias',
    '__proto__',
    'constructor',
  ],
];

/** Bodies of which some are right, and most have a field or two of any value. */
export const bodies = fc.array(fc.tuple(fc.constantFrom(...fields), value), { maxLength: 3 }).map((given) => {
  const right = [['prompt', '1 and '] as const, ['max_tokens', 4] as const];
  const text = (item: unknown) => (item instanceof Raw ? item.text : JSON.stringify(item));
  const all = [...right.filter(([name]) => given.every(([other]) => other !== name)), ...given];
  return `{${all.map(([name, item]) => `${JSON.stringify(name)}: ${text(item)}`).join(', ')}}`;
});

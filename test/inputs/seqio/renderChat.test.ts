/** @file Chats by templates: which tokens count, and errors with their record. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type ConfigValues } from '../../../src/hparams/index.js';
import {
  ByteTokenizer,
  type DataRecord,
  Feature,
  IterableSource,
  LanguageModelFeatures,
  type PackedLmBatch,
  PreferenceFeatures,
  publishedChatTemplate,
  RenderChat,
  SeqioInput,
  Task,
} from '../../../src/inputs/index.js';

class Chats extends IterableSource.with({ chats: z.array(z.record(z.string(), z.unknown())) }) {
  protected override records(): Iterable<DataRecord> {
    return this.hp.chats;
  }
}

/** Bytes, of which `^` begins a text and `$` ends it. */
class Bytes extends ByteTokenizer.with({}) {
  override get bosId(): number {
    return 94;
  }
  override get eosId(): number {
    return 36;
  }
}

const chatMl =
  "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}";

const marked = `{{ bos_token }}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
A:
        {%- generation %} {{ m.content }}{{ eos_token }}
        {%- endgeneration %}
    {%- else %}
{{ m.role[0] | upper }}: {{ m.content }}
    {%- endif %}
{%- endfor %}
{%- if tools %}[{{ tools | length }} tools]{% endif %}`;

const chat = (...contents: string[]) => ({
  messages: contents.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
});

function inputOf(
  chats: readonly Record<string, unknown>[],
  values: Partial<ConfigValues<RenderChat>> & { template: string },
  { lengths = { targets: 64 } as Record<string, number>, weightsOnTargetsOnly = null as boolean | null } = {},
): SeqioInput {
  const feature = Feature.config({ tokenizer: Bytes.config() });
  return build(
    SeqioInput.config({
      name: 'chats',
      mixtureOrTask: Task.config({
        source: Chats.config({ chats: [...chats] }),
        preprocessors: [RenderChat.config(values)],
        features: Object.fromEntries(Object.keys(lengths).map((name) => [name, feature])),
      }),
      splitName: 'all',
      taskFeatureLengths: lengths,
      featureConverter: LanguageModelFeatures.config({ bosId: 94, pack: true, weightsOnTargetsOnly }),
      batchSize: 1,
    }),
  );
}

const text = (ids: ArrayLike<number>) => String.fromCharCode(...Array.from(ids));

/** The text of a row by segment: labels that count in brackets. */
async function segmentsOf(input: SeqioInput): Promise<string[]> {
  const { labels, weights, segmentIds } = (await input.getNext()) as PackedLmBatch;
  const segments: string[] = [];
  let before = 0;
  for (const [t, id] of labels.data.entries()) {
    const segment = segmentIds.data[t]!;
    if (segment === 0) break;
    const weight = weights.data[t]!;
    if (segment !== segments.length) {
      segments.push('');
      before = 0;
    }
    const edge = weight === before ? '' : weight === 1 ? '[' : ']';
    segments[segment - 1] += edge + text([id]);
    before = weight;
  }
  return segments;
}

test('answers alone count: what a message adds to the chat that asks for it', async () => {
  const chats = [chat('hi', 'hello', 'bye', 'ciao'), chat('1?', '2')];
  const input = inputOf(chats, { template: chatMl }, { lengths: { targets: 96 } });
  expect(await segmentsOf(input)).toEqual([
    '<user>hi\n<assistant>[hello\n]<user>bye\n<assistant>[ciao\n',
    '<user>1?\n<assistant>[2\n',
  ]);
});

test('answers between generation tags count; special tokens are the tokenizer’s, and no label begins a text', async () => {
  const chats = [{ ...chat('hi', 'hello', 'bye', 'ciao'), tools: [1, 2] }];
  expect(await segmentsOf(inputOf(chats, { template: marked }))).toEqual([
    'U: hiA:[ hello$]U: byeA:[ ciao$][2 tools]',
  ]);
  const variables = { eos_token: '.', bos_token: '' };
  expect(await segmentsOf(inputOf([chat('hi', 'ho')], { template: marked, variables }))).toEqual([
    'U: hiA:[ ho.',
  ]);
});

test('the last answer is a target of its own', async () => {
  const lengths = { inputs: 64, targets: 16 };
  const chats = [chat('hi', 'hello', 'bye', 'ciao')];
  const input = inputOf(
    chats,
    { template: chatMl, answers: 'last' },
    { lengths, weightsOnTargetsOnly: true },
  );
  expect(await segmentsOf(input)).toEqual(['<user>hi\n<assistant>hello\n<user>bye\n<assistant>[ciao\n']);
  const first = inputOf(
    [{ messages: [{ role: 'assistant', content: 'x' }] }],
    { template: chatMl, answers: 'last' },
    { lengths, weightsOnTargetsOnly: true },
  );
  expect(await segmentsOf(first)).toEqual(['<assistant>[x\n']);
});

const assistant = (content: string) => [{ role: 'assistant', content }];

/** Pairs of records, as text: the chosen half of each, then the rejected one. */
async function pairsOf(records: readonly Record<string, unknown>[], name = 'messages'): Promise<string[][]> {
  const feature = Feature.config({ tokenizer: Bytes.config() });
  const input = build(
    SeqioInput.config({
      name: 'pairs',
      mixtureOrTask: Task.config({
        source: Chats.config({ chats: [...records] }),
        preprocessors: [RenderChat.config({ template: chatMl, answers: 'pair', messages: name })],
        features: { inputs: feature, chosen: feature, rejected: feature },
      }),
      splitName: 'all',
      taskFeatureLengths: { inputs: 32, chosen: 8, rejected: 10 },
      featureConverter: PreferenceFeatures.config({ bosId: 94 }),
      batchSize: records.length,
    }),
  );
  const batch = (await input.getNext()) as unknown as Record<string, PackedLmBatch>;
  // The text of answers needs no feature `targets`.
  const { vocabSize } = input.dataIdentity();
  expect(input.vocabularyFor('chosen.ids').vocabSize).toBe(vocabSize);
  return ['chosen', 'rejected'].map((half) => {
    const { ids, labels, weights, paddings } = batch[half]!;
    expect(ids.shape).toEqual([records.length, 42]);
    return records.map((_, row) => {
      const at = [...Array(42).keys()].map((t) => row * 42 + t).filter((t) => paddings.data[t] === 0);
      const weighed = at.filter((t) => weights.data[t] === 1);
      expect(text(at.map((t) => ids.data[t]!)).slice(1)).toBe(
        text(at.map((t) => labels.data[t]!)).slice(0, -1),
      );
      return `${text(at.map((t) => labels.data[t]!))} [${text(weighed.map((t) => labels.data[t]!))}]`;
    });
  });
}

test('pairs: answers behind one prompt, or two chats that begin alike', async () => {
  const { messages } = chat('hi');
  const explicit = { prompt: messages, chosen: assistant('yes'), rejected: assistant('no') };
  const implicit = { chosen: chat('a', 'b', 'c', 'd').messages, rejected: chat('a', 'b', 'c', 'e').messages };
  expect(await pairsOf([explicit], 'prompt')).toEqual([
    ['<user>hi\n<assistant>yes\n [yes\n]'],
    ['<user>hi\n<assistant>no\n [no\n]'],
  ]);
  const short = { chosen: chat('a', 'b').messages, rejected: chat('a', 'longer').messages };
  expect(await pairsOf([short])).toEqual([
    ['<user>a\n<assistant>b\n [b\n]'],
    ['<user>a\n<assistant>longer\n [longer\n]'],
  ]);
  const different = { chosen: chat('a', 'b').messages, rejected: chat('A', 'b').messages };
  await expect(pairsOf([implicit, different])).rejects.toThrow(
    "SeqioInput 'pairs': record 1: the chosen and the rejected answer belong to different chats: from token 6 on, the " +
      'messages before them differ. Both end with the answer, behind the same messages.',
  );
  await expect(pairsOf([short, { chosen: short.chosen }])).rejects.toThrow(
    "SeqioInput 'pairs': record 1: the example has no 'rejected'. It has: chosen.",
  );
});

test('what is wrong is told with its record', async () => {
  const failing = (chats: Record<string, unknown>[], template = chatMl) =>
    inputOf(chats, { template }).getNext();
  const good = chat('a', 'b');
  await expect(failing([good, { messages: [] }])).rejects.toThrow(
    "SeqioInput 'chats': record 1: 'messages': expected a list of messages, each with role and content, as " +
      '{ "role": "user", "content": "Hi" }; got [].',
  );
  await expect(failing([{ messages: [{ role: 'user', content: 'a' }, { content: 'b' }] }])).rejects.toThrow(
    "SeqioInput 'chats': record 0: 'messages': expected a list of messages, each with role and content, as " +
      '{ "role": "user", "content": "Hi" }; got {"content":"b"}.',
  );
  await expect(failing([good, { message: 'a' }])).rejects.toThrow(
    "SeqioInput 'chats': record 1: the example has no 'messages'. Did you mean 'message'? It has: message.",
  );
  await expect(failing([good, chat('a')])).rejects.toThrow(
    "SeqioInput 'chats': record 1: the chat has no message of role 'assistant', so there is nothing to learn. It has the " +
      'roles: user.',
  );
  const strict = "{{ raise_exception('roles must alternate') if messages[0].role == 'assistant' }}";
  await expect(
    failing([{ messages: [{ role: 'assistant', content: 'b' }] }], strict + chatMl),
  ).rejects.toThrow(
    "SeqioInput 'chats': record 0: the chat template fails for 1 messages: roles must alternate. Valid are the messages, " +
      'tools and variables that it asks for; variables: bos_token, eos_token.',
  );
  const lastAlone = "{% for m in messages %}{{ m.content if loop.last else '-' }}{% endfor %}";
  await expect(failing([chat('a', 'b')], lastAlone)).rejects.toThrow(
    "SeqioInput 'chats': record 0: the chat template renders what stands before message 1 otherwise once the message is " +
      'there, so that its answer cannot be told apart. Put {% generation %} and {% endgeneration %} around answers in the template.',
  );
  await expect(failing([chat('a', 'b\uFDD0')], marked)).rejects.toThrow(
    "SeqioInput 'chats': record 0: the chat template opens {% generation %} without closing it before the next one, or a " +
      'message has U+FDD0 or U+FDD1.',
  );
  await expect(failing([chat('a')], marked)).rejects.toThrow(
    "SeqioInput 'chats': record 0: the chat template puts nothing between {% generation %} and {% endgeneration %}, so there " +
      'is nothing to learn.',
  );
});

test('a template of bad syntax fails before data is read; that of a published model is found in its folder', () => {
  expect(() => inputOf([], { template: '{% for m in %}' })).toThrow(
    'The chat template is not valid Jinja: Unexpected token: CloseStatement.\n  while building RenderChat at preprocessors[0]\n' +
      '  while building SeqioInput',
  );
  const folder = mkdtempSync(join(tmpdir(), 'chat-'));
  expect(() => publishedChatTemplate(folder)).toThrow(
    `${folder} has no chat template: neither chat_template.jinja, nor a chat_template in tokenizer_config.json.`,
  );
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ chat_template: chatMl }));
  expect(publishedChatTemplate(folder)).toBe(chatMl);
  writeFileSync(join(folder, 'chat_template.jinja'), marked);
  expect(publishedChatTemplate(folder)).toBe(marked);
});

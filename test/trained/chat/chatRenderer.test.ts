/** @file Chat templates in their process: texts, errors, and templates that would loop for good or take all memory. */
import { afterAll, expect, test } from 'vitest';
import { ChatRenderer } from '../../../src/trained/chat/chatRenderer.js';

const made: ChatRenderer[] = [];
afterAll(() => Promise.all(made.map((each) => each.close())));

function rendererOf(text: string, variables = {}): ChatRenderer {
  made.push(new ChatRenderer(() => ({ text, origin: 'models/x', variables })));
  return made.at(-1)!;
}

const chat = [{ role: 'user', content: 'Hi' }];

test('a chat is rendered up to its answer, generation tags aside; hostile ones end, and the next is rendered', async () => {
  const text = `{{ bos_token }}{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}{{ x }}{{ add_generation_prompt }}
{%- if x == 'loop' %}{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}{% endif %}
{%- if x == 'memory' %}{{ range(1000000000) | length }}{% endif %}
{%- if x == 'length' %}{% set ns = namespace(s='0123456789abcdef') %}{% for i in range(21) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}{% endif %}
{%- if x == 'fails' %}{{ raise_exception('roles must alternate') }}{% endif %}`;
  const renderer = rendererOf(text, { bos_token: '<s>' });
  const refused = (x: string) => renderer.render(chat, { x }).catch((error: Error) => error.message);
  expect(await renderer.render(chat, { x: 1 })).toBe('<s>Hi1true');
  expect(await refused('fails')).toBe('The chat template of models/x fails: roles must alternate.');
  const problem = 'The chat template of models/x fails: it';
  expect(await refused('loop')).toBe(`${problem} takes more than 1 s.`);
  expect(await refused('length')).toBe(`${problem} writes more than 16777216 characters.`);
  expect(await refused('memory')).toContain(`${problem} takes more than `);
  expect(await renderer.render(chat, { x: 2 })).toBe('<s>Hi2true');
});

test('a template that is no Jinja is told', async () => {
  await expect(rendererOf('{% for %}').check()).rejects.toThrow(
    /^The chat template of models\/x is not valid Jinja: /,
  );
});

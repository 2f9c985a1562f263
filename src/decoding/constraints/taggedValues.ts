/** @file Values of JSON schemas between texts, such as calls of tools (XGrammar's structural tags). */
import { z } from 'zod';
import { addSchema, type Json } from './jsonSchemas.js';
import { JSON_RULES } from './jsonTexts.js';
import { choice, type Grammar, literal, repeat, rule, sequence } from './textExpressions.js';

/** Schema of a JSON schema. */
export const schemaField = z.union([z.boolean(), z.record(z.string(), z.json())]);

/** Schema of tags: texts around a value; and what stands between two of them, without which there is one. */
export const tagsField = z.strictObject({
  tags: z.array(z.strictObject({ begin: z.string(), jsonSchema: schemaField, end: z.string() })).min(1),
  separator: z.string().optional(),
});

/** One value of any tag, or as many as there may be. @throws ConfigError as `addSchema` */
export function taggedValues({ tags, separator }: z.output<typeof tagsField>): Grammar {
  const rules = new Map(JSON_RULES);
  const options = tags.map(({ begin, jsonSchema, end }, i) => {
    addSchema(rules, `value ${i}`, jsonSchema as Json);
    return sequence(literal(begin), rule(`value ${i}`), literal(end));
  });
  rules.set('tag', choice(...options));
  const others = separator === undefined ? [] : [repeat(sequence(literal(separator), rule('tag')), 0)];
  rules.set('root', sequence(rule('tag'), ...others));
  return { rules, root: 'root' };
}

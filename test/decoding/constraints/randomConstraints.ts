/** @file Random regular expressions and JSON schemas. */
import fc from 'fast-check';

const atom = fc.constantFrom(
  ...[
    'a',
    'b',
    '1',
    '.',
    '[abc]',
    '[^a]',
    '\\d',
    '\\w',
    '\\s',
    '\\S',
    '€',
    '😀',
    'é',
    '[é-€]',
    '[^\\da-c]',
    '\\u{1F600}',
    '\\n',
    '\\.',
  ],
);
const quantifier = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,3}', '{0,2}?', '{2,}');

/** Patterns in JavaScript's syntax; longer ones may take JavaScript itself forever. */
export const randomPattern: fc.Arbitrary<string> = fc
  .letrec<{
    choice: string;
    sequence: string;
    part: string;
  }>((tie) => ({
    choice: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((options) => options.join('|')),
    sequence: fc.array(tie('part'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    part: fc
      .tuple(
        fc.oneof(
          { maxDepth: 2, depthSize: 'small' },
          atom,
          tie('choice').map((inner) => `(?:${inner})`),
        ),
        quantifier,
      )
      .map(([body, times]) => body + times),
  }))
  .choice.filter(({ length }) => length <= 30);

const name = fc.constantFrom('a', 'b', 'ab', 'é', 'a b', '"', '\\');
const size = fc.record({ least: fc.nat(3), more: fc.nat(3) });
const bounds = fc.record({ least: fc.integer({ min: -300, max: 300 }), more: fc.nat(500) });

/** Schemas of JSON values. */
export const randomSchema: fc.Arbitrary<object> = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    fc.constantFrom<object>(
      { type: 'boolean' },
      { type: 'null' },
      { type: 'string' },
      { type: 'number' },
      { type: 'integer' },
      {},
    ),
    fc.constantFrom<object>({ enum: ['a', 1, null, true] }, { const: 'é"\\' }, { type: ['integer', 'null'] }),
    fc.constantFrom<object>(
      { type: 'string', pattern: 'a+b' },
      { type: 'string', pattern: '^[\\w"\\\\]{2,4}$' },
      { type: 'string', format: 'uuid' },
      { type: 'string', format: 'date-time' },
    ),
    size.map(({ least, more }) => ({ type: 'string', minLength: least, maxLength: least + more })),
    bounds.map(({ least, more }) => ({ type: 'integer', minimum: least, maximum: least + more })),
    bounds.map(({ least, more }) => ({
      type: 'number',
      exclusiveMinimum: least / 16,
      maximum: least / 16 + more / 4 + 0.25,
    })),
    fc.record({ items: tie('schema'), sizes: size }).map(({ items, sizes: { least, more } }) => ({
      ...{ type: 'array', items, minItems: least, maxItems: least + more },
    })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc
      .record({
        members: fc.uniqueArray(fc.tuple(name, tie('schema'), fc.boolean()), {
          selector: ([key]) => key,
          maxLength: 4,
        }),
        more: fc.constantFrom<unknown>(false, true, { type: 'integer' }, undefined),
      })
      .map(({ members, more }) => ({
        ...{ type: 'object', properties: Object.fromEntries(members.map(([key, schema]) => [key, schema])) },
        required: members.filter(([, , isRequired]) => isRequired).map(([key]) => key),
        ...(more !== undefined && { additionalProperties: more }),
      })),
  ),
})).schema;

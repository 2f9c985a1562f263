/** @file Constraints as fields of configs and requests have them, and compiled for a vocabulary. */
import { z } from 'zod';
import { grammar } from './grammars.js';
import { anyObject, grammarOf, type Json, jsonSchema } from './jsonSchemas.js';
import { regularExpression } from './regularExpressions.js';
import { schemaField, taggedValues, tagsField } from './taggedValues.js';
import type { Grammar } from './textExpressions.js';
import { TokenConstraint } from './tokenConstraint.js';
import { type TokenBytes, VocabularyTrie } from './vocabularyTrie.js';

/** Schema of a constraint. */
export const constraintField = z.union([
  z.strictObject({ regex: z.string() }),
  z.strictObject({ grammar: z.string() }),
  z.strictObject({ jsonSchema: schemaField }),
  z.strictObject({ json: z.literal('object') }),
  tagsField,
]);

/**
 * The texts that may be decoded: those of a regular expression, of a grammar's rule `root`, of a JSON schema, any JSON object, or
 * values of schemas between tags.
 */
export type Constraint = z.output<typeof constraintField>;

function grammarFrom(constraint: Constraint): Grammar {
  if ('regex' in constraint) return grammarOf(regularExpression(constraint.regex));
  if ('grammar' in constraint) return grammar(constraint.grammar);
  if ('jsonSchema' in constraint) return jsonSchema(constraint.jsonSchema as Json);
  return 'tags' in constraint ? taggedValues(constraint) : anyObject();
}

/** Compiled constraints that are kept: the newest. */
const MOST_KEPT = 8;

/** Constraints on the texts of a vocabulary. */
export class Constraints {
  #trie: VocabularyTrie | undefined;
  readonly #compiled = new Map<string, TokenConstraint>();

  /**
   * @param vocabSize of the model.
   * @param bytesOf of the ids that may be drawn.
   * @param endIds that end a text, whatever bytes they have.
   */
  constructor(
    private readonly vocabSize: number,
    private readonly bytesOf: TokenBytes,
    private readonly endIds: ReadonlySet<number>,
  ) {}

  /** A compiled constraint. @throws ConfigError for errors of syntax, what is not supported, and what goes beyond limits */
  compile(constraint: Constraint): TokenConstraint {
    const key = JSON.stringify(constraint);
    const { endIds, bytesOf } = this;
    this.#trie ??= new VocabularyTrie(this.vocabSize, (id) => (endIds.has(id) ? undefined : bytesOf(id)));
    const compiled =
      this.#compiled.get(key) ?? new TokenConstraint(grammarFrom(constraint), this.#trie, endIds);
    this.#compiled.delete(key);
    this.#compiled.set(key, compiled);
    if (this.#compiled.size > MOST_KEPT) this.#compiled.delete(this.#compiled.keys().next().value!);
    return compiled;
  }
}

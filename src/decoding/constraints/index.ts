/** @file Constraints of decoded texts: regular expressions, grammars and JSON schemas over the tokens of a vocabulary. */

export { type Constraint, Constraints, constraintField } from './constraint.js';
export {
  allowedLogits,
  type ConstrainedText,
  isAllowed,
  type TokenBits,
  type TokenConstraint,
  writeAllowed,
} from './tokenConstraint.js';
export type { TokenBytes } from './vocabularyTrie.js';

/** @file What becomes of each of tfjs's kernels in a program, as a page. */
import * as kernels from '@tensorflow/tfjs-core/dist/kernel_names.js';
import '../../src/compiler/index.js';
import {
  allDecompositions,
  allVariants,
  COMPLEX_KERNELS,
} from '../../src/compiler/decompositions/decomposition.js';
import { REFUSED } from '../../src/compiler/decompositions/refused.js';
import { opNames } from '../../src/compiler/rules/index.js';

/** Kernels that no function of tfjs-core calls, with what it calls in their place. */
const UNCALLED: Readonly<Record<string, string>> = {
  LogicalXor: '`tf.logicalXor` calls `LogicalOr`, `LogicalAnd` and `LogicalNot`',
  LowerBound: '`tf.lowerBound` calls `SearchSorted`',
  MatrixBandPart: '`tf.linalg.bandPart` calls `LogicalAnd` and `Select`, among others',
  Pool: '`tf.pool` calls `AvgPool` or `MaxPool`',
  UpperBound: '`tf.upperBound` calls `SearchSorted`',
};

const names = Object.values(kernels as unknown as Record<string, string>)
  .filter((name) => typeof name === 'string')
  .sort();

function statusOf(kernel: string): string {
  const refusal = REFUSED[kernel];
  if (opNames().includes(kernel)) return allVariants().has(kernel) ? 'rule, some calls decomposed' : 'rule';
  if (allDecompositions().has(kernel) || COMPLEX_KERNELS.includes(kernel)) return 'decomposed';
  if (refusal)
    return `refused${refusal.takesConstants ? ' but of constants' : ''}: ${refusal.reason}; ${refusal.instead}`;
  const instead = UNCALLED[kernel];
  return instead ? `not called: ${instead}` : 'missing';
}

/** The page as Markdown. */
export function coveragePage(): string {
  const rows = names.map((name) => [name, statusOf(name)] as const);
  const count = (prefix: string): number => rows.filter(([, status]) => status.startsWith(prefix)).length;
  return `# Operations

Which kernels of TensorFlow.js a compiled function may call. A kernel with a *rule* is an operation of the program; a
*decomposed* one is recorded as other operations, with its own gradient. A *refused* one is an error that says what to
do instead, as is a *missing* one. Those that are *not called* are names that no function of TensorFlow.js runs.
\`npm run coverage -- --write\` makes this page.

Of ${rows.length} kernels, ${count('rule')} have a rule, ${count('decomposed')} are decomposed, ${count('refused')} are refused, ${count('not called')} are not called and ${count('missing')} are missing.

| kernel | |
|---|---|
${rows.map(([name, status]) => `| \`${name}\` | ${status} |`).join('\n')}
`;
}

/**
 * @file The page of tfjs's kernels, from the rules and decompositions: prints it, or writes it with --write.
 *
 *     npm run coverage -- --write
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { coveragePage } from '../test/docs/coverage.js';
import { root } from '../test/docs/pages.js';

if (process.argv.includes('--write')) writeFileSync(join(root, 'docs/guide/operations.md'), coveragePage());
else console.log(coveragePage());

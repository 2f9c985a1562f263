/** @file A command whose code, as its argument says, ends the process, blocks it, or waits for nothing. */
import { enterForeignCode, watchForeignCode } from '../../src/system/index.js';

const [how] = process.argv.slice(2);
const ended = watchForeignCode(1);
enterForeignCode('lm.Before', 'loaded')();
const done = enterForeignCode('lm.Bad', 'loaded');
if (how === 'exits') process.exit(0);
if (how === 'fails') process.exit(3);
if (how === 'waits') await new Promise(() => {});
if (how === 'loops') for (;;);
done();
if (how === 'exits later') process.exit(0);
ended();
process.exit(0);

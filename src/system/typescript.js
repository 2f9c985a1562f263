/** @file `node --import THIS`: the process may import and require TypeScript. */
// First, for an older Node fails at what follows.
import './supportedNode.js';
import './limits.js';
import typescript from './typescript.cjs';

const restore = typescript.keepTranslationsApart();
try {
  await import('tsx');
} finally {
  restore();
}

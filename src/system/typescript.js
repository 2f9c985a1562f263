/** @file `node --import THIS`: the process may import and require TypeScript. */
import typescript from './typescript.cjs';

const restore = typescript.keepTranslationsApart();
try {
  await import('tsx');
} finally {
  restore();
}

/** @file `node --import THIS`: the process may import TypeScript. */
import typescript from './typescript.cjs';

const restore = typescript.keepTranslationsApart();
try {
  const { register } = await import('tsx/esm/api');
  register();
} finally {
  restore();
}

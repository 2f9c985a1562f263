#!/usr/bin/env node
/** @file The `luthier` command: TypeScript is loaded as it is, that of the project and that of the experiments. */
import '../system/typescript.js';

await import('./main.ts');

#!/usr/bin/env node
/** @file The executable `luthier`, which loads TypeScript: its own and that of experiments. */
import '../system/typescript.js';

await import('./commandLine.ts');

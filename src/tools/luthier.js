#!/usr/bin/env node
/** @file Executable `luthier`, which loads TypeScript: its own and that of experiments. */
import '../system/typescript.js';

await import('./commandLine.ts');

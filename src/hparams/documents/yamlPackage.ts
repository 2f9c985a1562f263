/** @file The package that reads YAML: its 70 files are loaded for the first document, and most runs read none. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const yamlPackage = (): typeof import('yaml') => require('yaml');

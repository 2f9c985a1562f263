/** @file Refusal of a Node older than package.json's `engines`, before the modules that such a Node cannot load. */
import { readFileSync } from 'node:fs';

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
const oldest = /\d+\.\d+/.exec(JSON.parse(manifest).engines.node)?.[0] ?? '';
const [major = 0, minor = 0] = oldest.split('.').map(Number);
const [ownMajor = 0, ownMinor = 0] = process.version.slice(1).split('.').map(Number);

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  process.stderr.write(`Luthier needs Node ${oldest} or newer: this is Node ${process.version.slice(1)}.\n`);
  process.exit(1);
}

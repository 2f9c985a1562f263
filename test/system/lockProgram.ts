/** @file Takes the lock at a path, by flock or by an address, says so, and waits to be killed. */
import { acquireLock, loadFlock } from '../../src/system/lock.js';

const [path, kind] = process.argv.slice(2);
await acquireLock(path!, kind === 'flock' ? loadFlock() : Promise.resolve(undefined));
process.stdout.write('held\n');
setInterval(() => {}, 1000);

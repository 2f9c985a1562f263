/**
 * @file Random programs in machine code that sanitizers watch: run by programs.long.ts. Arguments: how many are
 * differentiated once, how many twice, the seed.
 */
import { campaign, FLOAT32, SECOND } from '../compiler/campaign.js';

const [once, twice, seed] = process.argv.slice(2).map(Number) as [number, number, number];
const first = await campaign({ engine: 'native', programs: once, seed });
const second = await campaign({ engine: 'native', programs: twice, seed, order: 2 });
const failures = [
  ...first.filter(({ difference }) => difference > FLOAT32),
  ...second.filter(({ difference }) => difference > SECOND),
];
console.log(JSON.stringify({ programs: first.length + second.length, failures }));

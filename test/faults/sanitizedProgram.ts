/** @file Random programs in machine code that sanitizers watch: run by programs.long.ts. Arguments: how many, the seed. */
import { campaign } from '../compiler/campaign.js';

const [programs, seed] = process.argv.slice(2).map(Number) as [number, number];
const outcomes = await campaign({ engine: 'native', programs, seed });
const failures = outcomes.filter(({ difference }) => difference > 1e-5);
console.log(JSON.stringify({ programs: outcomes.length, failures }));

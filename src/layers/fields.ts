/** @file Schemas of fields that several layers have. */
import { z } from 'zod';

/** The depth of an attention head; by default `dims`, the field that holds the depth of all heads, divided by numHeads. */
export const dimPerHeadField = (dims: string) =>
  z.int().positive().nullable().default(null).describe(`Depth of a head; null: ${dims} / numHeads.`);

/** The probability of dropping `what`; 0 by default, and never 1. */
export const dropoutField = (what: string) =>
  z.number().min(0).lt(1).default(0).describe(`Probability that ${what} is dropped.`);

/** Two positive integers, for height and width. */
export const pairField = () => z.tuple([z.int().positive(), z.int().positive()]);

/** Where windows may lie. */
export const paddingField = z
  .enum(['SAME', 'VALID'])
  .default('SAME')
  .describe("Whether windows reach beyond the edges ('SAME') or lie within the input ('VALID').");

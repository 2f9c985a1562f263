/** @file BaseMixer: layers in which the positions of a sequence see each other, and their arguments. */
import { z } from 'zod';
import type { Tensor } from '../../compiler/index.js';
import type { Visibility } from '../attention/visibility.js';
import { BaseLayer } from './base.js';

/** Arguments of a mixer over whole sequences. */
export interface MixerArgs {
  /** Visibility of positions to each other. */
  readonly seen?: Visibility | undefined;
  /** [B, S, D]: vectors that keys are projected from, as in cross-attention; the inputs where absent. */
  readonly keyVec?: Tensor | undefined;
  /** [B, S, D]: vectors that values are projected from; those of the keys where absent. */
  readonly valueVec?: Tensor | undefined;
}

/** Arguments of a step of a decode, which takes the next T tokens of each row. */
export interface StepArgs {
  /** int32 scalar, or [B]: position of the first of the tokens. */
  readonly timeStep: Tensor;
  /**
   * int32 scalar, or [B]: how many of the T tokens belong to the sequence; those behind, which fill up a block of a prompt,
   * leave no trace that a later step sees. All where absent.
   */
  readonly length?: Tensor | undefined;
  /**
   * int32 [B]: how many of a row's leading tokens see each other (prefix language models). All of them are in this step, whose
   * `timeStep` is 0.
   */
  readonly prefix?: Tensor | undefined;
  /**
   * int32 [P]: lengths of prompts, each of which B / P consecutive rows share and continue, with its state in the context's
   * `promptState`. None where absent.
   */
  readonly promptLength?: Tensor | undefined;
  /** int32 [B]: the one of the T tokens of each row whose logits are asked for; all where absent. Models alone read it. */
  readonly logitsAt?: Tensor | undefined;
  /** Visibility of the memory's positions, for layers that attend to one (`begin`). */
  readonly memorySeen?: Visibility | undefined;
}

/**
 * Base of what may stand in a transformer block's attention place: attention, recurrences, state spaces, convolutions. State
 * between the steps of a decode is declared by `decodeStateSpecs`; at the start of a decode it is zeros.
 */
export abstract class BaseMixer extends BaseLayer.with({
  inputDim: z.int().positive().describe('Depth of the model.'),
}) {
  static override readonly isAbstract = true;

  /** Depth of the outputs: inputDim, but of recurrent layers outside of blocks. */
  get outputDim(): number {
    return this.hp.inputDim;
  }

  /** Whole sequences: [B, T, inputDim] to [B, T, outputDim]. */
  abstract fprop(inputs: Tensor, args?: MixerArgs): Tensor;

  /** The next T tokens after those in the decode state: [B, T, inputDim] to [B, T, outputDim], as `fprop` with `causal`. */
  abstract extendStep(inputs: Tensor, args: StepArgs): Tensor;
}

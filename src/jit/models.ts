/** @file compileModel: models of tfjs that run compiled. */
import { type CompiledGraphModel, compileGraphModel, type GraphModel, isGraphModel } from './graphModel.js';
import type { ModelOptions } from './jit.js';
import { type CompiledModel, compileLayersModel } from './layersModel.js';

export type { CompiledGraphModel, CompiledModel };

/** Distinguishes tf.Sequential and tf.LayersModel from other models. */
interface LayersModelType {
  fit(...args: any[]): unknown;
  evaluate(...args: any[]): unknown;
}

/** Distinguishes a tf.GraphModel from other models. */
interface GraphModelType {
  readonly modelVersion: string;
  execute(...args: any[]): unknown;
}

/**
 * Runs a model of tfjs-layers compiled: `predict`, `evaluate`, `fit`, `trainOnBatch`, `fitDataset` and
 * `evaluateDataset` have the arguments and results of the model's own methods, as promises. Weights and optimizer
 * slots are those of `model`. Dropout and noise layers draw again in each step, from `options.seed`. Each method keeps
 * at most `options.maxPrograms` programs, one per batch size.
 *
 * @param model a tf.Sequential or tf.LayersModel; all but `predict` need `model.compile` before.
 */
export function compileModel(model: LayersModelType, options?: ModelOptions): CompiledModel;
/**
 * Runs a graph model of tfjs-converter compiled: `predict` and `execute` have the arguments and results of the model's
 * own methods, as promises. Its weights are constants of the programs.
 *
 * @param model from `tf.loadGraphModel`. With `options.graphBreaks`, nodes that need values while the graph runs, such
 * as loops, run operation by operation on the current backend, and all before them compiled.
 * @throws CompilerError, as a rejection, that names the nodes that can't be compiled.
 */
export function compileModel(model: GraphModelType, options?: ModelOptions): CompiledGraphModel;
export function compileModel(model: object, options: ModelOptions = {}): CompiledModel | CompiledGraphModel {
  return isGraphModel(model)
    ? compileGraphModel(model as GraphModel, options)
    : compileLayersModel(model, options);
}

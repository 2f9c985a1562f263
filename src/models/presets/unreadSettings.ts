/** @file Fields of a config.json that a preset does not read, and that may change the network's numbers. */

/** Fields without a say in a network's numbers, or whose say other fields repeat. */
const HARMLESS = [
  /^_/,
  /_token_ids?$/,
  /^(architectures|auto_map|model_type|torch_dtype|dtype|transformers_version|tokenizer_class)$/,
  /^(use_cache|cache_implementation|attn_implementation|return_dict|return_dict_in_generate)$/,
  /^(output_\w+|pretraining_tp|gradient_checkpointing|chunk_size_feed_forward|is_decoder|torchscript)$/,
  // Packed tensors are known by themselves; others are an error of the weights.
  /^quantization_config$/,
  // Initial values and regularizations of training.
  /^(initializer_\w+|router_aux_loss_coef|aux_loss_alpha|seq_aux|router_z_loss_coef|classifier_dropout)$/,
  // Heads of other tasks, and ViT's pooler, which classifiers lack.
  /^(encoder_stride|pooler_act|pooler_output_size)$/,
  /^(summary_\w+|id2label|label2id|problem_type|task_specific_params|finetuning_task|num_labels)$/,
  // Defaults of generation, from when config.json had them.
  /^(do_sample|temperature|top_k|top_p|max_length|min_length|num_beams|repetition_penalty)$/,
  /^(length_penalty|num_beam_groups|num_return_sequences|typical_p)$/,
  // Of T5, what feed_forward_proj says.
  /^(dense_act_fn|is_gated_act)$/,
  // Implied by others, or by the network's lack of what they set.
  /^(n_ctx|reorder_and_upcast_attn|topk_group|qk_head_dim|ep_size|num_nextn_predict_layers)$/,
];

/** Settings whose reads are recorded. */
export interface RecordedSettings {
  /** The settings, as reads shall go through. */
  readonly settings: unknown;
  /** Paths of fields that nothing has read, with values that are more than an absence. */
  unread(): string[];
}

/** Records which fields of settings are read, nested ones too. @param json a parsed config.json */
export function recordReads(json: unknown): RecordedSettings {
  const read = new Set<string>();
  const recorded = (value: object, before: string): object =>
    new Proxy(value, {
      get(target, key) {
        const found: unknown = Reflect.get(target, key);
        if (typeof key === 'symbol') return found;
        read.add(before + key);
        return isRecord(found) ? recorded(found, `${before}${key}.`) : found;
      },
    });
  const unreadOf = (value: object, before: string): string[] =>
    Object.entries(value).flatMap(([key, field]) => {
      const path = before + key;
      if (HARMLESS.some((pattern) => pattern.test(key)) || isAbsent(field)) return [];
      if (!read.has(path)) return [path];
      return isRecord(field) ? unreadOf(field, `${path}.`) : [];
    });
  return {
    settings: isRecord(json) ? recorded(json, '') : json,
    unread: () => (isRecord(json) ? unreadOf(json, '') : []),
  };
}

const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a value turns a feature off: null, false, 0, an empty text, list or record. */
const isAbsent = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.keys(value).length === 0 : !value;

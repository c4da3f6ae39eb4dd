/**
 * The tokenizer of OpenAI's models since GPT-4o (`o200k_base`). The vocabulary comes from `gpt-tokenizer`, which is
 * large and loaded only when such a model is resolved. This file splits the text itself, because the package splits by
 * the rules of an older vocabulary and takes quadratic time for one long run of letters. Spec: MD-53, MD-69.
 */

/** Names of models that use this vocabulary. */
const family = /^(?:ft:)?(?:chatgpt-|codex-|o\d|gpt-(?:4o|4\.\d|[5-9]|\d\d))/

/** Maximum characters of one piece: merging takes quadratic time in it. */
const longest = 64

const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const contraction = String.raw`(?:'(?:[sdmtSDMT]|[lL]{2}|[vV][eE]|[rR][eE]))?`

/** Words with the preceding character, numbers of up to three digits, punctuation, line ends, other space. */
const split = new RegExp(
  [
    String.raw`[^\r\n\p{L}\p{N}]?${upper}{0,${longest}}${lower}{1,${longest}}${contraction}`,
    String.raw`[^\r\n\p{L}\p{N}]?${upper}{1,${longest}}${lower}{0,${longest}}${contraction}`,
    String.raw`\p{N}{1,3}`,
    String.raw` ?[^\s\p{L}\p{N}]{1,${longest}}[\r\n/]{0,${longest}}`,
    String.raw`\s{0,${longest}}[\r\n]{1,${longest}}`,
    String.raw`\s{1,${longest}}(?!\S)`,
    String.raw`\s{1,${longest}}`
  ].join("|"),
  "gu"
)

/** Splits a text into short pieces that are counted separately; together they are the text. */
export const pieces = (text: string): ReadonlyArray<string> => text.match(split) ?? []

/** Maximum pieces in the cache. */
const rememberedPieces = 10_000

/** Bundlers accept that an optional package is absent if its import has a handler. */
const absent = (cause: unknown): never => {
  throw cause
}

const load = async (): Promise<(text: string) => number> => {
  const [{ BytePairEncodingCore }, vocabulary] = await Promise.all([
    import("gpt-tokenizer/BytePairEncodingCore").catch(absent),
    import("gpt-tokenizer/bpeRanks/o200k_base").catch(absent)
  ])
  const core = new BytePairEncodingCore({
    bytePairRankDecoder: vocabulary.default,
    tokenSplitRegex: split,
    mergeCacheSize: rememberedPieces
  })
  // Special tokens in a text count as text.
  return (text) => core.countNative(text)
}

let loaded: Promise<(text: string) => number> | undefined

/** A counter for this OpenAI model; undefined if the model uses another vocabulary. */
export const countTokensOf = async (model: string): Promise<((text: string) => number) | undefined> => {
  if (!family.test(model)) return undefined
  loaded ??= load()
  return loaded
}

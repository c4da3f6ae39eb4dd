/**
 * The tokenizer of OpenAI's models since GPT-4o (`o200k_base`). The vocabulary comes from `gpt-tokenizer`, which is large
 * and loaded only when such a model is resolved; how a text is split is decided here, because the package splits by the
 * rules of an older vocabulary and takes quadratic time for one long run of letters. Spec: MD-53.
 */

/** Models whose names say that they use this vocabulary. */
const family = /^(?:ft:)?(?:chatgpt-|codex-|o\d|gpt-(?:4o|4\.\d|[5-9]|\d\d))/

/** A run of one kind is merged within this many characters only: the cost of a merge grows with the square of it. */
const longest = 64

const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const contraction = String.raw`(?:'(?:[sdmtSDMT]|[lL]{2}|[vV][eE]|[rR][eE]))?`

/** Words with the character before them, numbers by threes, punctuation, line ends, other space. */
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

/** The pieces of a text that are counted one by one; together they are the text, and none is long. */
export const pieces = (text: string): ReadonlyArray<string> => text.match(split) ?? []

/** Pieces whose counts are remembered. */
const rememberedPieces = 10_000

const load = async (): Promise<(text: string) => number> => {
  const [{ BytePairEncodingCore }, vocabulary] = await Promise.all([
    import("gpt-tokenizer/BytePairEncodingCore"),
    import("gpt-tokenizer/bpeRanks/o200k_base")
  ])
  const core = new BytePairEncodingCore({
    bytePairRankDecoder: vocabulary.default,
    tokenSplitRegex: split,
    mergeCacheSize: rememberedPieces
  })
  // Without special tokens: what looks like one in a text is text.
  return (text) => core.countNative(text)
}

let loaded: Promise<(text: string) => number> | undefined

/** Counts tokens as the named model of OpenAI does; nothing for a model that is known to count otherwise. */
export const countTokensOf = async (model: string): Promise<((text: string) => number) | undefined> => {
  if (!family.test(model)) return undefined
  loaded ??= load()
  return loaded
}

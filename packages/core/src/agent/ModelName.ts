/** Parses model names in files. Pure. Spec: CF-12. */
import { ParseResult, Schema } from "effect"
import type { ModelRef } from "@daybook/log/domain/Values"
import { expects, selected, someText } from "../definition/Fields.ts"

/** Providers whose model names may end in `:variant`; elsewhere a colon is part of the name (`ollama/qwen3:8b`). */
const withVariants: ReadonlySet<string> = new Set(["anthropic", "openai"])

const pattern = /^([A-Za-z0-9][A-Za-z0-9._-]*)\/([^\s\p{Cc}]{1,300})$/u

/** Parses `provider/id[:variant]`; undefined if the text is not a model name. */
export const parseModelName = (text: string): ModelRef | undefined => {
  const [, providerID, rest] = pattern.exec(text) ?? []
  if (providerID === undefined || rest === undefined) return undefined
  const colon = withVariants.has(providerID) && !rest.startsWith("ft:") ? rest.lastIndexOf(":") : -1
  if (colon < 0) return { providerID, id: rest }
  const [id, variant] = [rest.slice(0, colon), rest.slice(colon + 1)]
  return id === "" || variant === "" ? undefined : { providerID, id, variant }
}

const Named = Schema.Struct({
  providerID: someText,
  id: someText,
  variant: Schema.optionalWith(someText, { exact: true })
})

const Text = Schema.String.pipe(
  Schema.filter((text) => parseModelName(text) !== undefined),
  expects("a model as provider/id, for example anthropic/claude-opus-5-5:high")
)

/** A model as a text, or as a map with `providerID`, `id` and `variant`. */
export const WrittenModel = selected<ModelRef>((value) =>
  typeof value === "object" && value !== null
    ? ParseResult.decodeUnknown(Named)
    : (input, options) =>
        ParseResult.flatMap(ParseResult.decodeUnknown(Text)(input, options), (text) =>
          ParseResult.succeed(parseModelName(text) ?? { providerID: "", id: text })
        )
)

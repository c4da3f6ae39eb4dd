/** Splits Markdown with YAML front matter between two lines of three hyphens. Pure. Spec: CF-4. */
import { Either } from "effect"
import { type Issue, type Parsed, parseYaml } from "./Yaml.ts"

export interface Frontmatter {
  readonly data: Parsed
  /** The text after the front matter, trimmed. */
  readonly body: string
}

const fence = /^---[ \t]*$/

/** Splits a file. Without a first line of three hyphens, the whole file is the body. */
export const parseFrontmatter = (text: string): Either.Either<Frontmatter, ReadonlyArray<Issue>> => {
  const lines = text.replaceAll("\r\n", "\n").split("\n")
  if (!fence.test(lines[0] ?? "")) return Either.map(parseYaml(""), (data) => ({ data, body: text.trim() }))
  const end = lines.findIndex((line, index) => index > 0 && fence.test(line))
  if (end < 0) {
    return Either.left([{ path: "", line: 1, details: "the front matter is not closed with a line of three hyphens" }])
  }
  const body = lines
    .slice(end + 1)
    .join("\n")
    .trim()
  return Either.map(parseYaml(lines.slice(1, end).join("\n"), 2), (data) => ({ data, body }))
}

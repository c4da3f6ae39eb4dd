/**
 * Checks what a machine can check of the prose: the length of clauses, and phrases that a reader has to read twice.
 */
import { assert, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The files below these paths, relative to the repository; a path may be a file. */
const filesOf = (paths: ReadonlyArray<string>, endings: RegExp): ReadonlyArray<string> =>
  paths.flatMap((path) =>
    !existsSync(join(root, path))
      ? []
      : statSync(join(root, path)).isFile()
        ? [path]
        : readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
            .map((name) => join(path, name))
            .filter((name) => endings.test(name))
  )

const packages = readdirSync(join(root, "packages")).map((name) => join("packages", name))
const specs = filesOf(["specs"], /\.md$/).filter((file) => file !== join("specs", "laws.md"))
const prose = [
  ...specs,
  ...filesOf(["README.md", "CONTRIBUTING.md", "SECURITY.md", "bench"], /\.(?:ts|md)$/),
  ...filesOf(["docs/index.md", "docs/guides", "docs/concepts", "docs/reference/index.md"], /\.md$/),
  ...packages.flatMap((path) => filesOf([join(path, "src"), join(path, "README.md")], /\.ts$/))
]
const textOf = (file: string) => readFileSync(join(root, file), "utf8")

const mostLines = 3
const mostColumns = 120

/** A clause: its item's first paragraph. Tables and paragraphs below it do not count. */
const clause = /^- \*\*([A-Z]{2}-[A-Z]?\d+)\*\*.*(?:\n {2}(?![ |`-]).*|\n {2}`(?!``).*)*/gm

it("each clause of the specs has at most three lines of 120 columns", () => {
  const tooLong = specs.flatMap((file) =>
    [...textOf(file).matchAll(clause)].flatMap(([text, number]) => {
      const lines = text.split("\n")
      const fits = lines.length <= mostLines && lines.every((line) => line.length <= mostColumns)
      return fits ? [] : [`${file}: ${number}`]
    })
  )
  assert.deepStrictEqual(tooLong, [])
})

/** Word for word translations, and words for persons where the text is about a caller, a process or a client. */
const phrases: ReadonlyArray<RegExp> = [
  /\bwhat (?:was|is|were|are) told\b/i,
  /\bwhat (?:was|is) come\b/i,
  /\b(?:that|what|it|they) (?:came|comes|come) to\b/i,
  /\btold (?:apart|of)\b/i,
  /\bwhoever\b/i,
  /\bborne\b/i,
  /\b(?:stand|stands|stood) for\b/i,
  /\b(?:Somebody|Nobody|Nobody's)\b/,
  /(?<!there )\b(?:is|are|was) no (?:name|id|path|session|file|folder|object|list|error|link|prompt|row|event)\b/i,
  /(?:[.!?] |\/\*\* |\n- \*\*[A-Z]{2}-[A-Z]?\d+\*\* (?:\([^)]*\) )?)Of an? /,
  /\bof then\b/i,
  /\bof its own accord\b/i,
  /\bthe way of an?\b/i
]

it("no text says in a translator's words what the field has a word for", () => {
  const found = prose.flatMap((file) => {
    // Sentences continue on the next line of a comment or a paragraph.
    const text = textOf(file).replace(/\n[ \t]*(?:\*(?!\/)|\/\/)?[ \t]*(?=[^\s\-|#])/g, " ")
    return phrases.flatMap((phrase) => {
      const match = phrase.exec(text)
      return match === null ? [] : [`${file}: ${text.slice(Math.max(0, match.index - 40), match.index + 60)}`]
    })
  })
  assert.deepStrictEqual(found, [])
})

it("no text has the marks of a merge that was not finished", () => {
  const texts = [...specs, ...filesOf(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"], /\.md$/)]
  const marked = texts.filter((file) => /^(?:<{7} |>{7} )/m.test(textOf(file)))
  assert.deepStrictEqual(marked, [])
})

/** Method: queries are made of pieces that are special to FTS5, to the parser or to nobody, and run on a real index. */
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Either, FastCheck as fc, Struct } from "effect"
import { markText, matchText, parse, phraseText } from "../../packages/log/src/search/Query.ts"
import { forAll } from "../support/Cases.ts"

const now = Date.UTC(2026, 0, 15)

const read = (text: string) => Either.getOrThrow(parse(text, now))

const reasonOf = (text: string) =>
  Either.match(parse(text, now), { onLeft: ({ details }) => details, onRight: () => "" })

const piece = fc.oneof(
  fc.constantFrom(
    ..."AND OR NOT NEAR( ) ( { } ^ + : - * \" ' \\ % , text : tag:x rowid \0 \ud800 東京 ก e\u0301 -- ;".split(" "),
    "NEAR(a b, 3)",
    "a*b",
    "-",
    '"',
    '""',
    "role:user",
    "-role:tool",
    "tool:bash",
    'tool:"a b"',
    "model:claude*",
    "after:7d",
    "before:2026-01-31T10:00Z",
    "title:x",
    "session:ses_a",
    "cwd:.",
    "word",
    '"two words"',
    '"two wor"*',
    "\t",
    "#1",
    "s1"
  ),
  fc.string({ unit: "binary" }),
  fc.string()
)

const text = fc
  .array(piece, { maxLength: 12 })
  .chain((pieces) => fc.constantFrom(" ", "", "  ").map((between) => pieces.join(between)))

it("SE-31: every text is a valid query of FTS5 or a clear error", () => {
  const db = new Sqlite(":memory:")
  db.exec("CREATE VIRTUAL TABLE terms USING fts5(text, tag, tool, model, content='', contentless_delete=1)")
  const run = db.prepare("SELECT rowid FROM terms WHERE terms MATCH ?")
  const marks = new Sqlite(":memory:")
  marks.exec("CREATE VIRTUAL TABLE shown USING fts5(text)")
  const mark = marks.prepare("SELECT rowid FROM shown WHERE shown MATCH ?")
  forAll([text, fc.option(fc.array(fc.nat(), { minLength: 1 }), { nil: undefined })], 600, (query, sessions) => {
    const found = parse(query, now)
    if (Either.isLeft(found)) return assert.isNotEmpty(found.left.details)
    run.all(matchText(found.right, sessions))
    const [phrase, words] = [phraseText(found.right), markText(found.right)]
    if (phrase !== undefined) run.all(phrase)
    if (words !== undefined) mark.all(words)
  })
})

it("SE-31: the number of sessions in a query has no bound below the limit", () => {
  const db = new Sqlite(":memory:")
  db.exec("CREATE VIRTUAL TABLE terms USING fts5(text, tag, tool, model)")
  const sessions = Array.from({ length: 1_000 }, (_, at) => at)
  db.exec("INSERT INTO terms (rowid, text, tag) VALUES (7, 'word', 's999 ruser')")
  const match = matchText(read("word"), sessions)
  assert.deepStrictEqual(db.prepare("SELECT rowid FROM terms WHERE terms MATCH ?").all(match), [{ rowid: 7 }])
})

it("SE-30: words, phrases, prefixes, exclusions and filters are read as written", () => {
  assert.deepStrictEqual(read('one "two three" fou* "five si"* -six -"seven eight"'), {
    terms: [
      { text: "one", prefix: false },
      { text: "two three", prefix: false },
      { text: "fou", prefix: true },
      { text: "five si", prefix: true }
    ],
    tags: [],
    without: [
      { text: "six", prefix: false },
      { text: "seven eight", prefix: false }
    ],
    sessions: [],
    titles: [],
    folders: [],
    after: undefined,
    before: undefined
  })
  const filtered = read(
    'TOOL:bash tool:"read file" -model:gpt role:User session:fix title:"log in" cwd:./src -role:tool'
  )
  assert.deepStrictEqual(filtered.tags, [
    { name: "tool", value: "bash" },
    { name: "tool", value: "read file" },
    { name: "role", value: "user" }
  ])
  assert.deepStrictEqual(filtered.without, [
    { name: "model", value: "gpt" },
    { name: "role", value: "tool" }
  ])
  assert.deepStrictEqual([filtered.sessions, filtered.titles, filtered.folders], [["fix"], ["log in"], ["./src"]])
})

it("SE-30: what is no filter is a word: addresses, paths, names with colons", () => {
  const texts = read("https://example.com std::vector C:\\temp a-b").terms.map((term) => term.text)
  assert.deepStrictEqual(texts, ["https://example.com", "std::vector", "C:\\temp", "a-b"])
})

it("SE-32: a quote without its partner separates words", () => {
  assert.deepStrictEqual(read('say "hello world').terms.map(Struct.get("text")), ["say", "hello", "world"])
  assert.deepStrictEqual(read('"a b" c" d').terms.map(Struct.get("text")), ["a b", "c", "d"])
})

it("SE-33: times are dates, times and ages, in UTC unless they name a zone; the narrowest bound counts", () => {
  assert.strictEqual(read("after:2026").after, Date.UTC(2026, 0, 1))
  assert.strictEqual(read("after:2026-03").after, Date.UTC(2026, 2, 1))
  assert.strictEqual(read("before:2026-03-04").before, Date.UTC(2026, 2, 4))
  assert.strictEqual(read("after:2026-03-04T05:06Z").after, Date.UTC(2026, 2, 4, 5, 6))
  assert.strictEqual(read("after:2026-03-04T05:06:07+01:00").after, Date.UTC(2026, 2, 4, 4, 6, 7))
  assert.strictEqual(read("after:2d after:1h after:1w").after, now - 3_600_000)
  assert.strictEqual(read("before:2d before:1h").before, now - 172_800_000)
})

it("SE-34: a faulty filter is an error that says what is expected", () => {
  assert.include(reasonOf("role:nobody"), "role: is user, assistant, reasoning, tool")
  assert.include(reasonOf("after:yesterday"), "after: is a date such as")
  assert.include(reasonOf("before:2026-02-30"), "before: is a date such as")
  assert.include(reasonOf("after:2026-13-01"), "after: is a date such as")
  assert.include(reasonOf("tool:--"), "tool: needs a name")
  assert.include(reasonOf('cwd:""'), "cwd: needs a value")
  assert.include(reasonOf("-title:x"), "-title: is not supported")
  assert.include(reasonOf("-after:7d"), "use before:")
  for (const empty of ["", "   ", "--- ***", '"', '""', "()"]) assert.include(reasonOf(empty), "give a word")
  assert.include(reasonOf("word ".repeat(33)), "32 words and filters at most")
  assert.include(reasonOf("x".repeat(1_001)), "1000 characters at most")
})

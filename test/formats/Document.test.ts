/** Tests sessions as Markdown, HTML and JSON Lines. Spec: FM-170..FM-178 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Schema, Stream } from "effect"
import MarkdownIt from "markdown-it"
import { type DefaultTreeAdapterTypes as Tree, parse } from "parse5"
import * as Document from "../../packages/formats/src/document/Document.ts"
import { Message } from "../../packages/log/src/domain/Message.ts"
import * as Redaction from "../../packages/log/src/support/Redaction.ts"
import { forAll } from "../support/Cases.ts"
import { allKinds, answer, pixel, prompt, reasoning, session, text, tool } from "./support/Sessions.ts"

type Write = (typeof Document)["html"]

const written = (write: Write, messages: ReadonlyArray<Message>, options?: Document.DocumentOptions) =>
  Effect.runSync(Stream.runCollect(write(session, Stream.fromIterable(messages), options))).pipe(Chunk.join(""))

const html = (messages: ReadonlyArray<Message>) => written(Document.html, messages)

/** All nodes of a page, in order. */
const nodesOf = (page: string): ReadonlyArray<Tree.Node> => {
  const nodes: Array<Tree.Node> = []
  const left: Array<Tree.Node> = [parse(page)]
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    nodes.push(node)
    if ("childNodes" in node) left.push(...node.childNodes.toReversed())
  }
  return nodes
}

const elementsOf = (page: string): ReadonlyArray<Tree.Element> =>
  nodesOf(page).filter((node): node is Tree.Element => "tagName" in node)

const attributesOf = ({ attrs }: Tree.Element): Record<string, string> =>
  Object.fromEntries(attrs.map(({ name, value }) => [name, value]))

const wordsOf = (node: Tree.Node): string =>
  "value" in node && node.nodeName === "#text"
    ? node.value
    : "childNodes" in node
      ? node.childNodes.map(wordsOf).join("")
      : ""

const byClass = (page: string, name: string) =>
  elementsOf(page).filter((element) => attributesOf(element)["class"] === name)

/** Texts that try to leave the place where they are shown. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.constantFrom(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</pre></details></section></main>",
        '"><svg onload=alert(1)>',
        "<style>*{display:none}</style>",
        "<!--",
        "-->",
        "]]>",
        "<![CDATA[",
        "<?php",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](http://example.com/a.png)",
        "![x](javascript:alert(1))",
        "<http://example.com>",
        "[x]: javascript:alert(1)",
        "```",
        "~~~~",
        "- ```",
        "> ",
        "    ",
        "\n",
        "\r",
        "\n\n## Prompt 9\n\n",
        "---\n",
        "&lt;script&gt;",
        "\u0000\u0007",
        "\ud800",
        "\u2028",
        "</title>",
        "${x}",
        "\\"
      )
    ),
    { maxLength: 8 }
  )
  .map((parts) => parts.join(""))

/** Messages with a hostile text in each place. */
const hostileMessages = (given: string): ReadonlyArray<Message> => [
  prompt(given, {
    expansion: {
      parts: [
        { kind: "file", name: given, content: { type: "text", text: given } },
        {
          kind: "media",
          name: given,
          content: { type: "file", uri: `data:image/png;base64,${given}`, mime: "image/png" }
        },
        { kind: "media", name: given, content: { type: "file", uri: `x${given}`, mime: `image/${given}` } }
      ]
    }
  }),
  answer(
    [
      reasoning(given),
      text(given),
      tool(`n${given}`, { [given]: given, path: given }, [{ type: "text", text: given }], {
        state: "error",
        error: { type: "failed", message: given }
      })
    ],
    { model: { providerID: `p${given}`, id: `m${given}` }, error: { type: "failed", message: given } }
  ),
  answer([text("the end")])
]

const elementsAllowed = new Set(
  (
    "html head meta title style body main header h1 h2 h3 h4 h5 h6 p code section time div details summary b em pre " +
    "figure img figcaption footer nav ol ul li a blockquote hr br strong s table thead tbody tr th td"
  ).split(" ")
)
const attributesAllowed = new Set(
  "lang charset http-equiv content name id class href rel src alt title aria-label start".split(" ")
)

describe("documents", () => {
  it("FM-170: each format shows what each kind of message holds", () => {
    const messages = allKinds()
    for (const [format, page] of [
      ["markdown", written(Document.markdown, messages)],
      ["html", html(messages).replaceAll("&lt;", "<")],
      ["jsonl", written(Document.jsonl, messages)]
    ] as const) {
      for (const words of [
        "picture",
        "export const till = 1",
        "The till counts twice.",
        "const a = 1 < 2",
        "src/till.ts",
        "npm test",
        "exit code 1",
        "The folder changed.",
        "Remember the tests.",
        "git status",
        "plan",
        "gpt",
        "The branch tried a cache.",
        "We fixed the till.",
        "And now the tests",
        "interrupted by the user"
      ]) {
        assert.include(page, words, format)
      }
    }
  })

  it("FM-171: each line of JSON Lines is one message of the public schema", () => {
    const messages = allKinds()
    const lines = written(Document.jsonl, messages).trimEnd().split("\n")
    assert.deepStrictEqual(
      lines.map((line) => Schema.decodeSync(Schema.parseJson(Message))(line)),
      messages
    )
  })

  it("FM-620: Markdown and HTML end an answer that is not whole with its sentence", () => {
    const messages = [answer([text("I would rather not.")], { finish: "refusal" })]
    const sentence = "The model refused to answer."
    assert.match(written(Document.markdown, messages), /I would rather not\.\n\n\*The model refused to answer\.\*\n/)
    assert.deepStrictEqual(byClass(html(messages), "error").map(wordsOf), [sentence])
  })

  it("FM-172: whatever a message holds, the next message of a Markdown document begins with its heading", () => {
    const parser = new MarkdownIt("commonmark")
    forAll([hostile], 60, (given) => {
      const messages = [
        prompt(given),
        answer([reasoning(given), text(given)]),
        ...hostileMessages(given),
        prompt("end")
      ]
      const tokens = parser.parse(written(Document.markdown, messages), {})
      const headings = tokens.flatMap((token, index) =>
        token.type === "heading_open" && token.level === 0 && token.tag === "h2"
          ? [tokens[index + 1]?.content ?? ""]
          : []
      )
      const own = headings.filter((heading) =>
        /^(?:Prompt \d+|Answer of .*) \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)$/.test(heading)
      )
      assert.strictEqual(own.length, messages.length)
      assert.strictEqual(headings.at(-1)?.startsWith("Prompt 3 "), true)
    })
  })

  it("FM-172: a carriage return in a prompt does not end its quote", () => {
    const tokens = new MarkdownIt("commonmark").parse(written(Document.markdown, [prompt("a\r\r## Sneaky")]), {})
    const sneaky = tokens[tokens.findIndex(({ content }) => content === "Sneaky") - 1]
    assert.deepInclude(sneaky, { type: "heading_open", level: 1 })
  })

  it("FM-173: the end adds up cost and tokens of the answers, and says what is estimated", () => {
    const page = html(allKinds())
    const [footer] = elementsOf(page).filter(({ tagName }) => tagName === "footer")
    assert.strictEqual(
      footer === undefined ? "" : wordsOf(footer).trim(),
      "2 prompts, 2 answers, 2 tool calls.\n" +
        "2,000 input tokens (1,200 tokens read from and 200 tokens written to the cache), 100 output tokens.\n" +
        "Cost: $0.5000, partly estimated."
    )
    assert.include(written(Document.markdown, allKinds()), "0.5000, partly estimated")
  })

  it("FM-174: whatever a message holds, a page has only its own elements, loads nothing and runs nothing", () => {
    forAll([hostile], 60, (given) => {
      const page = html(hostileMessages(given))
      for (const element of elementsOf(page)) {
        const { href, src, ...others } = attributesOf(element)
        assert.isTrue(elementsAllowed.has(element.tagName), element.tagName)
        for (const name of Object.keys({ href, src, ...others })) {
          if (attributesOf(element)[name] !== undefined) assert.isTrue(attributesAllowed.has(name), name)
        }
        if (src !== undefined) assert.match(src, /^data:image\/png;base64,[A-Za-z0-9+/=\s]+$/)
        if (href !== undefined) assert.match(href, /^(?:https?:\/\/|mailto:|#)/i)
      }
      assert.strictEqual(elementsOf(page).filter(({ tagName }) => tagName === "section").length, 3)
      assert.strictEqual(elementsOf(page).filter(({ tagName }) => tagName === "style").length, 1)
    })
  })

  it("FM-174: a prompt and a result are shown character by character", () => {
    forAll([hostile], 40, (given) => {
      const page = html([prompt(given), answer([tool("x", {}, [{ type: "text", text: `.${given}.` }])])])
      const shown = (name: string) => byClass(page, name).map(wordsOf).join("")
      const fit = given.replaceAll(/(?![\t\n\r])[\p{Cc}\p{Cs}]/gu, "\ufffd").replaceAll(/\r\n?/g, "\n")
      assert.strictEqual(shown("asked"), fit)
      assert.strictEqual(shown("result"), `.${fit}.`)
    })
  })

  it("FM-174: the page's policy allows its own style and its pictures, and nothing else", () => {
    const [policy] = elementsOf(html([])).flatMap((element) =>
      attributesOf(element)["http-equiv"] === "Content-Security-Policy" ? [attributesOf(element)["content"] ?? ""] : []
    )
    assert.match(
      policy ?? "",
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; img-src data:; base-uri 'none'; form-action 'none'$/
    )
  })

  it("FM-176: pictures are part of the page, and files of other kinds are names", () => {
    const svg = { type: "file", uri: "data:image/svg+xml;base64,PHN2Zy8+", mime: "image/svg+xml", name: "x.svg" }
    const page = html([answer([tool("x", {}, [{ type: "file", uri: pixel, mime: "image/png", name: "p.png" }, svg])])])
    const images = elementsOf(page).filter(({ tagName }) => tagName === "img")
    assert.deepStrictEqual(images.map(attributesOf), [{ src: pixel, alt: "p.png" }])
    assert.deepStrictEqual(byClass(page, "file").map(wordsOf), ["x.svg (image/svg+xml)"])
  })

  it("FM-177: the list of prompts leads to each prompt", () => {
    const messages = allKinds()
    const page = html(messages)
    const ids = elementsOf(page).map((element) => attributesOf(element)["id"])
    const links = elementsOf(page).filter((element) => attributesOf(element)["href"]?.startsWith("#"))
    assert.deepStrictEqual(links.map(wordsOf), ["Look at **this** <b>picture</b>", "And now the tests"])
    for (const link of links) assert.include(ids, attributesOf(link)["href"]?.slice(1))
  })
})

describe("redacted documents", () => {
  const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
  const messages = hostileMessages(`the key is ${secret} here`)

  it("FM-175: no format shows a secret, and the redactor counted each", () => {
    for (const write of [Document.markdown, Document.html, Document.jsonl]) {
      const redactor = Redaction.make()
      const page = written(write, messages, { redactor })
      assert.notInclude(page, "abcdefghijklmnopqrstuvwxyz0123456789")
      assert.include(page, "the key is")
      assert.isAtLeast(redactor.counts.get("token") ?? 0, 5)
    }
  })

  it.effect(
    "FM-175: a redactor that fails, or that makes no message of a message, ends the document with an error",
    () =>
      Effect.gen(function* () {
        const own = Redaction.make()
        const broken: ReadonlyArray<Redaction.Redactor> = [
          { ...own, value: () => null },
          {
            ...own,
            value: () => {
              throw new Error(secret)
            }
          }
        ]
        for (const redactor of broken) {
          for (const write of [Document.markdown, Document.html, Document.jsonl]) {
            const error = yield* Effect.flip(
              Stream.runDrain(write(session, Stream.fromIterable(messages), { redactor }))
            )
            assert.strictEqual(error._tag, "RedactionFailed")
            assert.notInclude(JSON.stringify(error), secret)
          }
        }
      })
  )

  it("FM-175: pictures cannot be checked and are replaced", () => {
    const redactor = Redaction.make()
    const page = written(Document.html, allKinds(), { redactor })
    assert.notInclude(page, "<img")
    assert.strictEqual(redactor.counts.get("file"), 2)
  })
})

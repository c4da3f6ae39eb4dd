/** Files, folders and media that a prompt mentions, over the real runtime and real files. */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { picture } from "../support/Pictures.ts"
import { kinds, makeDesk, numbered, png, textOf } from "./support/Expanding.ts"

const rule = (resource: string, verdict: "allow" | "deny" | "ask") => ({ permission: "read", resource, verdict })

describe("text", () => {
  it.scoped("PX-10: a mentioned file is there as it is, with its place in the text", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("src/a.ts", "const a = 1\r\n\u00e9\u{1F600}")
      const text = "look at @src/a.ts, then at @src/a.ts again"
      const parts = yield* desk.parts(text)
      assert.deepStrictEqual(parts, [
        {
          kind: "file",
          name: "src/a.ts",
          content: { type: "text", text: "const a = 1\r\n\u00e9\u{1F600}" },
          source: { start: 8, end: 17, text: "@src/a.ts" }
        }
      ])
    })
  )

  it.scoped("PX-11: line ranges are honoured, and what had to be clamped is said", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("a.txt", numbered(12))
      const one = (text: string) => Effect.map(desk.parts(text), ([part]) => part)
      const middle = yield* one("@a.txt#L3-4")
      assert.deepStrictEqual([middle?.name, textOf(middle)], ["a.txt#L3-4", "line 3\nline 4\n"])
      const beyond = yield* one("@a.txt:11-99")
      assert.deepStrictEqual(
        [beyond?.name, textOf(beyond)],
        ["a.txt#L11-12", "line 11\nline 12\n[The file ends with line 12.]"]
      )
      const turned = yield* one("@a.txt:4-3")
      assert.deepStrictEqual(
        [turned?.name, textOf(turned)],
        ["a.txt#L3-4", "line 3\nline 4\n[Lines 4 to 3 were requested.]"]
      )
      assert.strictEqual((yield* one("@a.txt:0-2"))?.name, "a.txt#L1-2")
      const past = yield* one("@a.txt:50-60")
      assert.strictEqual(past?.kind, "failure")
      assert.include(textOf(past), "12 lines")
    })
  )

  it.scoped("PX-14: a huge file is cut at lines and bytes, and says how to read on", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("many.txt", "x\n".repeat(3_000_000))
      desk.write("wide.txt", `${"\u20ac".repeat(400_000)}\nnext\n`)
      const [many, wide] = yield* desk.parts("@many.txt and @wide.txt")
      assert.strictEqual(many?.name, "many.txt#L1-2000")
      assert.include(textOf(many), `path "many.txt", offset 2001`)
      assert.isBelow(Buffer.byteLength(textOf(wide)), 50 * 1024)
      assert.notInclude(textOf(wide), "\uFFFD")
      assert.include(textOf(wide), "more bytes of this line")
    })
  )

  it.scoped("PX-14: the text of one prompt is bounded, and what does not fit says so", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      for (let index = 0; index < 8; index++) desk.write(`f${index}.txt`, `${"0123456789".repeat(100)}\n`.repeat(47))
      const parts = yield* desk.parts(Array.from({ length: 8 }, (_, index) => `@f${index}.txt`).join(" "))
      assert.deepStrictEqual(
        parts.map(({ kind }) => kind),
        ["file", "file", "file", "file", "file", "failure", "failure", "failure"]
      )
      assert.include(textOf(parts[5]), "262,144 bytes")
    })
  )

  it.scoped("PX-10: an empty file is said to be empty, and bytes that are not UTF-8 are replaced and told", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("empty.txt", "")
      desk.write("late.txt", Buffer.concat([Buffer.from("\u4f60\n".repeat(10_000)), Buffer.from([0xff, 0xfe, 0x0a])]))
      desk.write("latin.txt", Buffer.from("caf\xe9\n", "latin1"))
      const [empty, late, latin] = yield* desk.parts("@empty.txt @late.txt:10001 @latin.txt")
      assert.strictEqual(textOf(empty), "[The file is empty.]")
      assert.include(textOf(late), "not UTF-8 are shown as U+FFFD")
      assert.strictEqual(textOf(latin), "caf\u00e9\n[The file is Windows-1252 (Latin-1).]")
    })
  )
})

it.scoped("PX-10: a mentioned folder is listed, folders first, and a long list is cut", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    desk.write("dir/b.txt", "")
    desk.write("dir/sub/c.txt", "")
    mkdirSync(join(desk.project, "full"))
    for (let index = 0; index < 1_005; index++) writeFileSync(join(desk.project, "full", `f${index}`), "")
    const [dir, full] = yield* desk.parts("@dir/ @full:3")
    assert.deepStrictEqual([dir?.kind, dir?.name, textOf(dir)], ["directory", "dir", "sub/\nb.txt\n"])
    assert.include(textOf(full), "Entries 1 to 1000 of 1005")
    assert.include(textOf(full), "A folder has no lines")
    assert.include(textOf(full), `the tool "read", path "full"`)
  })
)

describe("media", () => {
  it.scoped("PC-640: a mentioned document that is broken or locked is a failure with the reason", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("broken.pdf", "%PDF-1.4\nnot really a document\n")
      desk.write("locked.pdf", "%PDF-1.4\ntrailer\n<</Encrypt 3 0 R>>\n%%EOF\n")
      const parts = yield* desk.parts("@broken.pdf @locked.pdf")
      assert.deepStrictEqual(
        parts.map(({ content, kind }) => [kind, content.type === "text" ? content.text : ""]),
        [
          ["failure", '"broken.pdf" cannot be shown: it is not a valid PDF document: its end is missing'],
          ["failure", '"locked.pdf" cannot be shown: it is protected with a password']
        ]
      )
    })
  )

  it.scopedLive("PX-12: pictures and documents are told by their bytes, not by their names", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const samples: ReadonlyArray<readonly [string, Uint8Array, string]> = [
        ["a.txt", png, "image/png"],
        ["b.png", yield* picture({ format: "jpeg" }), "image/jpeg"],
        ["c.bin", yield* picture({ format: "gif" }), "image/gif"],
        ["d.dat", yield* picture({ format: "webp" }), "image/webp"],
        ["e.md", Buffer.from("%PDF-1.7\n1 0 obj\n%%EOF"), "application/pdf"]
      ]
      for (const [name, bytes] of samples) desk.write(name, bytes)
      const parts = yield* desk.parts(samples.map(([name]) => `@${name}`).join(" "))
      for (const [index, [name, bytes, mime]] of samples.entries()) {
        const uri = `data:${mime};base64,${Buffer.from(bytes).toString("base64")}`
        assert.deepStrictEqual(parts[index]?.content, { type: "file", uri, mime, name })
        assert.strictEqual(parts[index]?.kind, "media")
      }
    })
  )

  it.scoped("PX-12: other binary files are named by kind and size, and not shown", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("a.png", Buffer.from("PK\x03\x04 and so on\0"))
      desk.write("b.txt", Buffer.from([0, 1, 2, 3]))
      desk.write("c.txt", Buffer.from("\xff\xfeh\0i\0", "latin1"))
      const [zip, unknown, wide] = yield* desk.parts("@a.png @b.txt @c.txt")
      assert.deepStrictEqual(
        [zip, unknown, wide].map((part) => part?.kind),
        ["failure", "failure", "file"]
      )
      assert.match(textOf(zip), /ZIP archive.*15 bytes/)
      assert.include(textOf(unknown), "4 bytes")
      assert.strictEqual(textOf(wide), "hi\n[The file is UTF-16 (little-endian).]")
    })
  )

  it.scoped("PX-14: a document over 5 MiB, and what is over 20 MiB together, fail with their sizes", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const mib = 1024 * 1024
      const document = (size: number) =>
        Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(size - 15), Buffer.from("\n%%EOF")])
      desk.write("large.pdf", document(5 * mib + 1))
      for (let index = 0; index < 5; index++) desk.write(`p${index}.pdf`, document(5 * mib))
      const parts = yield* desk.parts("@large.pdf @p0.pdf @p1.pdf @p2.pdf @p3.pdf @p4.pdf")
      assert.deepStrictEqual(parts.map(Struct.get("kind")), ["failure", "media", "media", "media", "media", "failure"])
      assert.include(textOf(parts[0]), "5,242,881 bytes")
      assert.include(textOf(parts[5]), "20,971,520 bytes together")
    })
  )
})

describe("safety", () => {
  it.scoped("PX-10: nothing outside of the Location is read, whatever the path", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.writeOutside("secret.txt", "TOP SECRET")
      desk.write("in/side.txt", "fine")
      symlinkSync(join(desk.outside, "secret.txt"), join(desk.project, "link.txt"))
      symlinkSync(join(desk.outside, "secret.txt"), join(desk.project, "barelink"))
      symlinkSync(desk.outside, join(desk.project, "linked"))
      symlinkSync("loop.b", join(desk.project, "loop.a"))
      symlinkSync("loop.a", join(desk.project, "loop.b"))
      execFileSync("mkfifo", [join(desk.project, "pipe.txt")])
      const hostile = [
        "../outside/secret.txt",
        "in/../../outside/secret.txt",
        "./../outside",
        "/etc/passwd",
        join(desk.outside, "secret.txt"),
        "\\\\server\\share",
        "C:\\Windows\\win.ini",
        "link.txt",
        "barelink",
        "linked/secret.txt",
        "linked/",
        "loop.a",
        "pipe.txt",
        "in/side.txt/more.txt",
        "nothing/here.txt",
        "tool-output:call.txt",
        "n".repeat(300) + "/x"
      ]
      for (const name of hostile) {
        const [part, ...more] = yield* desk.parts(`@"${name}"`)
        assert.deepStrictEqual([part?.kind, more.length], ["failure", 0], name)
        assert.notInclude(JSON.stringify(part), "SECRET", name)
        // Only what the person wrote of the machine is repeated.
        if (!name.includes(desk.outside)) assert.notInclude(textOf(part), desk.outside, name)
      }
      assert.deepStrictEqual(kinds(yield* desk.parts("@in/../in/side.txt")), ["file in/side.txt"])
    })
  )

  it.scoped("PX-25, PX-10: a rule of the session's agent that denies `read` makes a failure; `ask` does not", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk(() => ({
        agents: [{ name: "careful", permissions: [rule("*", "ask"), rule("secret/*", "deny")] }]
      }))
      desk.write("secret/key.pem", "KEY")
      desk.write("open.txt", "open")
      symlinkSync(join(desk.project, "secret/key.pem"), join(desk.project, "innocent.txt"))
      const parts = yield* desk.parts("@secret/key.pem @open.txt @innocent.txt", "careful")
      assert.deepStrictEqual(parts.map(Struct.get("kind")), ["failure", "file", "failure"])
      assert.include(textOf(parts[0]), `rules of agent "careful"`)
      assert.notInclude(JSON.stringify(parts), "KEY")
    })
  )
})

it.scoped("PX-24, PX-3: a bare word that is nothing stays a word; one that looks like a path is a failure", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    desk.write("Makefile", "all:\n")
    assert.isUndefined(yield* desk.expand("ask @alice about @localhost:3000 and @todo:later"))
    assert.isUndefined(yield* desk.expand("nothing at all"))
    assert.deepStrictEqual(kinds(yield* desk.parts("@Makefile @alice @missing.ts @gone/")), [
      "file Makefile",
      "failure missing.ts",
      "failure gone/"
    ])
  })
)

it.scoped("PX-26, PX-14: the 101st mention, and what follows it, is one failure that says so", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    const names = Array.from({ length: 130 }, (_, index) => `m${index}.txt`)
    for (const name of names) desk.write(name, name)
    const mentions = names.map((name) => `@${name}`).join(" ")
    const parts = yield* desk.parts(`${"@alice @bob ".repeat(300)}${mentions}`)
    assert.strictEqual(parts.length, 101)
    assert.deepStrictEqual(kinds(parts.slice(99)), ["file m99.txt", "failure m100.txt"])
    assert.include(textOf(parts[100]), "100 items")
    const noise = Array.from({ length: 1_200 }, (_, index) => `@nobody${index}`).join(" ")
    const bounded = yield* desk.parts(`${noise} @m0.txt`)
    assert.deepStrictEqual(bounded.map(Struct.get("kind")), ["failure"])
  })
)

describe("attachments", () => {
  const data = (mime: string, bytes: Uint8Array | string) =>
    `data:${mime};base64,${Buffer.from(bytes).toString("base64")}`

  it.scoped("PX-13: data is kept as what its bytes are, and media are stored once", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const uris: ReadonlyArray<readonly [uri: string, mime: string]> = [
        [data("image/jpeg", png), "image/jpeg"],
        [data("application/octet-stream", "plain words\n"), "application/octet-stream"],
        ["data:text/plain,caf%C3%A9%20au%20lait", "text/plain"],
        [data("image/png", Buffer.from([0, 1, 2])), "image/png"],
        ["data:image/png;base64,!!!", "image/png"],
        ["data:image/png;base64", "image/png"]
      ]
      const files = uris.map(([uri, mime], index) => ({ uri, mime, name: `n${index}` }))
      const parts = yield* desk.parts({ text: "look", files })
      assert.deepStrictEqual(parts[0]?.content, { type: "file", uri: "attachment:0", mime: "image/png", name: "n0" })
      assert.deepStrictEqual(
        parts.slice(1, 3).map((part) => [part.kind, textOf(part)]),
        [
          ["file", "plain words\n"],
          ["file", "caf\u00e9 au lait"]
        ]
      )
      assert.deepStrictEqual(parts.slice(3).map(Struct.get("kind")), ["failure", "failure", "failure"])
      assert.include(textOf(parts[4]), "not valid base64")
      assert.include(textOf(parts[5]), "no comma")
    })
  )

  it.scoped("PX-13: long text that lies nowhere else is cut only where the prompt's room ends", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const file = (text: string) => ({ uri: data("text/plain", text), mime: "text/plain" })
      const [first, second, third] = yield* desk.parts({
        text: "",
        files: [file("y\n".repeat(60_000)), file("z\n".repeat(100_000)), file("w\n")]
      })
      assert.strictEqual(textOf(first).length, 120_000)
      assert.match(textOf(second), /^z[^]*\n\[Cut: the first [\d,]+ bytes of 200,000 bytes; the rest does not fit\.\]$/)
      assert.isBelow(textOf(first).length + textOf(second).length, 256 * 1024)
      assert.deepStrictEqual([first?.name, third?.name], ["attachment 1", "attachment 3"])
    })
  )

  it.scoped("PX-15: a `file:` URI is a path of the Location, with its lines, or a failure", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("a b.txt", numbered(9))
      desk.writeOutside("secret.txt", "TOP SECRET")
      const url = pathToFileURL(join(desk.project, "a b.txt")).href
      const outside = pathToFileURL(join(desk.outside, "secret.txt")).href
      symlinkSync(desk.project, join(desk.outside, "alias"))
      const alias = pathToFileURL(join(desk.outside, "alias", "a b.txt")).href
      const inside = [url, `${url}#L2-3`, `${url}?start=4&end=5`, `${alias}#L7`]
      const uris = [...inside, outside, "file://elsewhere/a", "file:///%00", "a b.txt"]
      const parts = yield* desk.parts({ text: "", files: uris.map((uri) => ({ uri, mime: "text/plain" })) })
      assert.deepStrictEqual(kinds(parts), [
        "file a b.txt",
        "file a b.txt#L2-3",
        "file a b.txt#L4-5",
        "file a b.txt#L7-7",
        "failure secret.txt",
        "failure a",
        "failure %00"
      ])
      assert.notInclude(JSON.stringify(parts), "SECRET")
      assert.notInclude(JSON.stringify(parts), desk.outside)
    })
  )

  it.scoped("PX-16: what is on the web or of an unknown scheme is a failure that says so", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const uris = ["https://example.org/a.png", "HTTP://example.org/b", "s3://bucket/key", "mcp:none:x://y"]
      const parts = yield* desk.parts({ text: "", files: uris.map((uri) => ({ uri, mime: "image/png" })) })
      assert.deepStrictEqual(parts.map(Struct.get("kind")), ["failure", "failure", "failure", "failure"])
      assert.include(textOf(parts[0]), "not fetched")
      assert.include(textOf(parts[2]), "s3:")
      assert.include(textOf(parts[3]), `MCP server "none"`)
    })
  )

  it.scoped("PX-5: mentions come in the order of the text, then what was given; a given place is looked at once", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      for (const name of ["a.txt", "b.txt", "c.txt"]) desk.write(name, name)
      const text = "@b.txt and @a.txt"
      const source = { start: 11, end: 17, text: "@a.txt" }
      const parts = yield* desk.parts({
        text,
        files: [
          { uri: "c.txt", mime: "text/plain" },
          { uri: "a.txt", mime: "text/plain", source }
        ]
      })
      assert.deepStrictEqual(kinds(parts), ["file b.txt", "file c.txt", "file a.txt"])
      assert.deepStrictEqual(parts[2]?.source, source)
    })
  )
})

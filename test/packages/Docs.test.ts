/** Reads the pages of the site as they are in the repository, without building it: links, headings, the side bar. */
import { assert, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { pathToFileURL } from "node:url"
import { Schema } from "effect"
import { manifest, root } from "./support/Packages.ts"

const docs = join(root, "docs")
/** Pages and files that `npm run docs` writes. */
const generated = [
  ...["commands", "configuration", "events", "http"].map((name) => join(docs, "reference", `${name}.md`)),
  join(docs, "api", "index.html"),
  join(docs, "openapi.json")
]

const pages = [
  "index.md",
  ...["guides", "concepts", "reference"].flatMap((folder) =>
    readdirSync(join(docs, folder)).flatMap((name) => (name.endsWith(".md") ? [join(folder, name)] : []))
  )
]
  .map((name) => join(docs, name))
  .filter((page) => !generated.includes(page))
const texts = [...pages, ...["README.md", "CONTRIBUTING.md", "SECURITY.md"].map((name) => join(root, name))]

const textOf = (file: string) => readFileSync(file, "utf8")
const proseOf = (file: string) => textOf(file).replaceAll(/^ *```[\s\S]*?^ *```/gm, "")

/** A heading as the address of its place, as the site and the usual viewers make it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

const hasAnchor = (file: string, anchor: string) =>
  Array.from(proseOf(file).matchAll(/^#+ (.*)$/gm), ([, heading = ""]) => anchorOf(heading)).includes(anchor)

/** Why a link of the file leads nowhere; undefined if it does. */
const faultOf = (file: string, link: string): string | undefined => {
  const [path = "", anchor] = link.split("#")
  const target = path === "" ? file : path.startsWith("/") ? join(docs, path) : join(dirname(file), path)
  if (generated.includes(target)) return undefined
  if (!existsSync(target)) return `${relative(root, file)}: ${link} does not exist`
  return anchor === undefined || hasAnchor(target, anchor)
    ? undefined
    : `${relative(root, file)}: ${link} has no such heading`
}

it("PA-10: each link of the pages and of the README leads to a file of the repository, or to a generated page", () => {
  const links = texts
    .flatMap((file) => Array.from(proseOf(file).matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) => ({ file, link })))
    .filter(({ link }) => !/^https?:/.test(link))
  assert.isAbove(links.length, 40)
  assert.deepStrictEqual(
    links.flatMap(({ file, link }) => faultOf(file, link) ?? []),
    []
  )
})

const Item = Schema.Struct({ link: Schema.String })
const decodeModule = Schema.decodeUnknownSync(
  Schema.Struct({ sidebar: Schema.Array(Schema.Struct({ items: Schema.Array(Item) })) })
)

it("PA-10: the side bar names each page of the site once", async () => {
  const module: unknown = await import(pathToFileURL(join(docs, ".vitepress", "pages.mjs")).href)
  const { sidebar } = decodeModule(module)
  const named = sidebar
    .flatMap(({ items }) => items.map(({ link }) => link))
    .map((link) => join(docs, link === "/" ? "index.md" : link.endsWith(".html") ? link : `${link}.md`))
  const index = join(docs, "reference", "index.md")
  const all = [...pages.filter((page) => page !== index), ...generated.filter((each) => !each.endsWith(".json"))]
  assert.deepStrictEqual([...named].sort(), [...all].sort())
})

it("PA-13: the packages that the page about installing packs need no others of ours", () => {
  const [, list = ""] =
    /^npm pack .* -w=packages\/\{([\w,]+)\}$/m.exec(textOf(join(docs, "guides", "install.md"))) ?? []
  const packed = list.split(",")
  assert.includeMembers(packed, ["embedded", "models", "log"])
  const needed = packed.flatMap((name) => {
    const { dependencies = {}, peerDependencies = {} } = manifest(join(root, "packages", name))
    return Object.keys({ ...dependencies, ...peerDependencies }).filter((each) => each.startsWith("@daybook/"))
  })
  assert.deepStrictEqual(
    needed.filter((name) => !packed.includes(name.replace("@daybook/", ""))),
    []
  )
})

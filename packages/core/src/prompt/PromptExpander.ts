/**
 * Resolves a prompt's mentions, attachments and template before its admission. The expansion is stored with the prompt
 * and replayed unchanged. Owns the meaning of mentions and the order of parts; `PromptParts.ts` renders the parts.
 * Never fails: an unresolved item becomes a part that tells the model why. Process-global. Spec: PX-1..PX-28 in
 * specs/context.md.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Cause, Context, Effect, Either, Layer, Option, Schema } from "effect"
import { attachmentUri, dataBytes } from "@daybook/log/domain/DataUri"
import type { Session } from "@daybook/log/domain/Message"
import type {
  ExpandedPart,
  Expansion,
  FileAttachment,
  Location,
  PromptInput,
  ToolContent
} from "@daybook/log/domain/Values"
import { Agents } from "../agent/Agents.ts"
import { type Agent, canAssist } from "../domain/Agent.ts"
import { deniesAll, verdictOf } from "../domain/Rule.ts"
import type { ToolFailure } from "../domain/ToolError.ts"
import { pdfFault } from "../picture/PictureFormat.ts"
import { dataUri, Pictures } from "../picture/Pictures.ts"
import { cutHead } from "../support/TextBounds.ts"
import { makeLocationFiles, parseReferenced, References } from "../workspace/LocationFiles.ts"
import { decodeOther } from "../workspace/TextEncoding.ts"
import { looksLikeText } from "../workspace/TextPage.ts"
import { binaryKind, mediaMime } from "./FilePart.ts"
import {
  bytesOf,
  failed,
  type Gathered,
  type Gathering,
  gatherPicture,
  gatherText,
  limits,
  mayRead,
  referenceParts,
  refuse,
  takeMedia,
  targetPart
} from "./FileParts.ts"
import { findMentions, type LineRange, type Mention, splitLines } from "./Mentions.ts"
import { expandTemplate, Templates } from "./Templates.ts"
import { quoted } from "../workspace/FileFailure.ts"
import { isHere, Workspaces } from "../workspace/Workspaces.ts"

// Reads resources of MCP servers for prompts; by default there are no servers.

/** A resource cannot be read; `message` is a sentence for the model. */
export class ResourceUnreadable extends Schema.TaggedError<ResourceUnreadable>("@daybook/core/ResourceUnreadable")(
  "ResourceUnreadable",
  { message: Schema.String }
) {}

interface Reader {
  readonly servers: Effect.Effect<ReadonlyArray<string>>
  readonly read: (server: string, uri: string) => Effect.Effect<ReadonlyArray<ToolContent>, ResourceUnreadable>
}

export class ResourceReader extends Context.Reference<ResourceReader>()("@daybook/core/ResourceReader", {
  defaultValue: (): Reader => ({
    servers: Effect.succeed([]),
    read: (server) => new ResourceUnreadable({ message: `there is no MCP server "${server}"` })
  })
}) {}

// Converts files given with a prompt, and contents of MCP resources, to parts.

/** Longer than a host's own timeout. */
const resourceTime = "70 seconds"

/** Text that exists nowhere else is truncated only at the prompt's limit. */
const wholeText = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: "file" | "resource",
  name: string,
  value: string
) {
  const cut = cutHead(value, { lines: Infinity, bytes: Math.max(gathering.room.text - 200, 0) })
  const whole = Buffer.byteLength(value)
  const shown =
    cut.bytes === 0 || cut.bytes === whole
      ? value
      : `${cut.shown}\n[Cut: the first ${bytesOf(cut.bytes)} of ${bytesOf(whole)}; the rest does not fit.]`
  return yield* gatherText(gathering, kind, name, shown, false)
})

/** Media or text from bytes; `kept` is the URI of data that is already stored. */
const bytesPart = Effect.fnUntraced(function* (
  gathering: Gathering,
  kind: "file" | "resource",
  name: string,
  bytes: Uint8Array,
  kept?: string
) {
  const mime = mediaMime(bytes)
  if (mime?.startsWith("image/") === true) {
    return { part: yield* gatherPicture(gathering, name, bytes, kept), canonical: false } satisfies Gathered
  }
  if (mime !== undefined) {
    const fault = pdfFault(bytes)
    if (fault !== undefined) return yield* refuse("file.invalid", `${quoted(name)} cannot be shown: ${fault}`)
    yield* takeMedia(gathering, name, bytes.length)
    const content: ToolContent = {
      type: "file",
      uri: kept ?? dataUri(mime, bytes),
      mime,
      name: path.posix.basename(name) || name
    }
    return { part: { kind: "media", name, content }, canonical: false } satisfies Gathered
  }
  const text = looksLikeText(bytes) ? Buffer.from(bytes).toString() : decodeOther(bytes)?.text
  if (text !== undefined) return yield* wholeText(gathering, kind, name, text)
  return yield* refuse(
    "file.binary",
    `${quoted(name)} is ${binaryKind(bytes)} (${bytesOf(bytes.length)}), which cannot be shown`
  )
})

/** `?start=10&end=20`, or `#L10-20`. */
const linesOf = (url: URL): LineRange | undefined => {
  const [start, end] = [url.searchParams.get("start"), url.searchParams.get("end")]
  const line = /^\d{1,9}$/
  if (start !== null && line.test(start)) {
    return { from: Number(start), to: end !== null && line.test(end) ? Number(end) : Number(start) }
  }
  return splitLines(`x${url.hash}`).lines
}

const localFile = Effect.fnUntraced(function* (gathering: Gathering, uri: string, name: string) {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  const given = yield* Effect.try({
    try: () => fileURLToPath(url ?? uri),
    catch: () => refuse("path.invalid", `${quoted(name)} is not the URI of a file on this machine`)
  })
  const within = (file: string) => {
    const relative = path.relative(gathering.directory, file)
    return relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? undefined : relative
  }
  // A path through a link to the Location's folder counts as inside.
  const real = Effect.orElseSucceed(
    Effect.tryPromise(() => fs.realpath(given)),
    () => given
  )
  const relative = within(given) ?? within(yield* real)
  if (relative === undefined) {
    return yield* refuse("path.outside", `${quoted(name)} lies outside the Location; only files inside it can be used`)
  }
  const target = yield* gathering.files.resolve(gathering.sessionID, relative === "" ? "." : `./${relative}`)
  return yield* targetPart(gathering, target, url === undefined ? undefined : linesOf(url))
})

/** The contents of one resource, or why they cannot be read. */
const resourceParts = Effect.fn("AttachmentParts.resource")(function* (
  gathering: Gathering,
  reader: ResourceReader["Type"],
  server: string,
  uri: string
) {
  const name = `${server}:${uri}`
  yield* mayRead(gathering, name)
  // Admission is uninterruptible; a server that hangs must not block it.
  const contents = yield* Effect.interruptible(reader.read(server, uri)).pipe(
    Effect.mapError(({ message }) => refuse("resource.unreadable", message)),
    Effect.timeoutFail({
      duration: resourceTime,
      onTimeout: () => refuse("resource.unreadable", `MCP server "${server}" did not answer in time`)
    })
  )
  if (contents.length === 0) return yield* refuse("resource.unreadable", `resource ${quoted(name)} is empty`)
  return yield* Effect.forEach(contents, (content) => {
    if (content.type === "text") return wholeText(gathering, "resource", name, content.text)
    const bytes = dataBytes(content.uri)
    return Either.isLeft(bytes)
      ? refuse("resource.unreadable", `${quoted(name)} ${bytes.left}`)
      : bytesPart(gathering, "resource", name, bytes.right)
  })
})

/** A display name for an attachment without one; it reveals no folders of a path outside the Location. */
const attachmentName = ({ name, uri }: FileAttachment, index: number): string => {
  if (name !== undefined && name !== "") return name.slice(0, 300)
  const last = /^data:/i.test(uri) ? "" : (uri.split(/[?#]/)[0]?.split(/[/\\]/).at(-1) ?? "")
  return last === "" ? `attachment ${index + 1}` : last.slice(0, 300)
}

const attachmentParts = (gathering: Gathering, reader: ResourceReader["Type"], file: FileAttachment, index: number) => {
  const { uri } = file
  const name = attachmentName(file, index)
  const one = Effect.map((part: Gathered) => [part])
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]+):/.exec(uri)?.[1]?.toLowerCase()
  if (scheme === "data") {
    const bytes = dataBytes(uri)
    return Either.isLeft(bytes)
      ? refuse("file.invalid", `the data of ${quoted(name)} ${bytes.left}`)
      : one(bytesPart(gathering, "file", name, bytes.right, attachmentUri(index)))
  }
  if (scheme === "file") return one(localFile(gathering, uri, name))
  if (scheme === "http" || scheme === "https") {
    return refuse("file.remote", `${quoted(name)} is on the web and was not fetched; give its content instead`)
  }
  const [, server, resource] = /^mcp:([^:]+):(.+)$/s.exec(uri) ?? []
  if (server !== undefined && resource !== undefined) return resourceParts(gathering, reader, server, resource)
  if (scheme !== undefined && uri.includes("://")) {
    return refuse("file.remote", `${quoted(name)} has a URI with an unsupported scheme ("${scheme}:")`)
  }
  return one(
    Effect.flatMap(gathering.files.resolve(gathering.sessionID, uri), (target) => targetPart(gathering, target))
  )
}

export class PromptExpander extends Context.Tag("@daybook/core/PromptExpander")<
  PromptExpander,
  {
    readonly expand: (session: Session, prompt: PromptInput) => Effect.Effect<Expansion | undefined>
  }
>() {}

type Source = ExpandedPart["source"]
type Parts = Effect.Effect<ReadonlyArray<Gathered>, ToolFailure>

/** An item that a prompt refers to; `resolve` returns no parts if the word is plain text. */
type Pointer = { readonly name: string; readonly source: Source; readonly resolve: (gathering: Gathering) => Parts }

/** A word with a slash or a dot is meant as a path. */
const looksLikePath = /[/\\.]/

const isBareName = (name: string) => !looksLikePath.test(name)

const mayHandTo = (own: Agent, other: Agent): boolean =>
  canAssist(other) && !deniesAll(own.permissions, "task") && verdictOf(own.permissions, "task", other.name) !== "deny"

/** Text that tells the model to hand work to the agent, if it may. */
const agentPart = Effect.fnUntraced(function* (gathering: Gathering, agent: Agent) {
  const { agent: own } = gathering
  if (own === undefined || !mayHandTo(own, agent)) {
    return yield* refuse(
      "permission.denied",
      canAssist(agent)
        ? `agent ${quoted(agent.name)} was mentioned, but the rules of agent ${quoted(own?.name ?? "")} do not allow ` +
            `it to hand work to that agent with the tool "task"`
        : `agent ${quoted(agent.name)} was mentioned, but it only leads sessions and takes no tasks`
    )
  }
  const what = agent.description === undefined ? "" : ` Its description: ${agent.description.slice(0, 1_000)}`
  return [
    yield* gatherText(
      gathering,
      "agent",
      agent.name,
      `The person asks for agent ${quoted(agent.name)} here. Hand the part of the request that is meant for it to that ` +
        `agent with the tool "task", say all that it needs to know, and use what it answers; do not do that part ` +
        `yourself.${what}`
    )
  ]
})

const one = Effect.map((part: Gathered) => [part])

const fileParts = (gathering: Gathering, name: string, lines: Mention["lines"]): Parts =>
  one(Effect.flatMap(gathering.files.resolve(gathering.sessionID, name), (file) => targetPart(gathering, file, lines)))

/**
 * Resolves to an agent, then a reference, then a resource, then a path; a bare word that matches none is plain text
 * (PX-3). A mention that only the template contains does not count as a person's approval.
 */
const mentionPointer = (reader: ResourceReader["Type"], mention: Mention, said: boolean): Pointer => {
  const { end, lines, resource, start, target, text } = mention
  const resolve = Effect.fnUntraced(function* (prompt: Gathering) {
    const gathering = said ? prompt : { ...prompt, byPerson: false }
    const agent = lines === undefined ? gathering.agents.find(({ name }) => name === target) : undefined
    if (agent !== undefined) return yield* agentPart(gathering, agent)
    if (gathering.references.has(target)) return yield* referenceParts(gathering, target)
    const slash = target.indexOf("/")
    const first = target.slice(0, Math.max(slash, 0))
    if (gathering.references.has(first)) {
      return yield* fileParts(gathering, `${first}:${target.slice(slash + 1)}`, lines)
    }
    const inReference = Option.isSome(parseReferenced(gathering.references, target))
    if (!inReference && resource !== undefined) {
      const servers = yield* reader.servers
      if (servers.includes(resource.server)) {
        return yield* resourceParts(gathering, reader, resource.server, resource.uri)
      }
      if (resource.uri.includes("://")) {
        return yield* refuse("resource.unreadable", `there is no MCP server ${quoted(resource.server)}`)
      }
    }
    const found = yield* Effect.either(gathering.files.resolve(gathering.sessionID, target))
    if (Either.isRight(found)) return yield* one(targetPart(gathering, found.right, lines))
    return isBareName(target) && found.left.type !== "path.outside" ? [] : yield* found.left
  })
  return { name: target, source: { start, end, text }, resolve }
}

/** A mention in a prompt that a process without the session's workspace admits. A file here is not the one that is meant. */
const unreadPointer = ({ end, start, target, text }: Mention, { workspaceID = "" }: Location): Pointer => ({
  name: target,
  source: { start, end, text },
  resolve: () =>
    refuse("workspace.absent", `${quoted(target)} was not read: the workspace ${workspaceID} is on another machine`)
})

const named = (prompt: PromptInput): ReadonlyArray<Pointer> => [
  ...(prompt.agents ?? []).map(({ name, source }) => ({
    name,
    source,
    resolve: (gathering: Gathering): Parts => {
      const agent = gathering.agents.find((known) => known.name === name)
      return agent === undefined
        ? refuse("agent.missing", `there is no agent ${quoted(name)}`)
        : agentPart(gathering, agent)
    }
  })),
  ...(prompt.references ?? []).map(({ name, source }) => ({
    name,
    source,
    resolve: (gathering: Gathering): Parts =>
      gathering.references.has(name)
        ? referenceParts(gathering, name)
        : refuse("reference.missing", `there is no reference ${quoted(name)}`)
  }))
]

const attached = (reader: ResourceReader["Type"], files: ReadonlyArray<FileAttachment>): ReadonlyArray<Pointer> =>
  files.map((file, index) => ({
    name: attachmentName(file, index),
    source: file.source,
    resolve: (gathering) => attachmentParts(gathering, reader, file, index)
  }))

/** An explicit item for a place in the text overrides the mention there. */
const isGiven = (given: ReadonlyArray<Pointer>) => {
  const spans = new Set(given.flatMap(({ source }) => (source === undefined ? [] : [`${source.start}:${source.text}`])))
  return ({ start, text }: Mention) => spans.has(`${start}:${text}`)
}

/** Converts every failure to a part for the model; unexpected failures are logged too. */
const total = (pointer: Pointer, gathering: Gathering): Effect.Effect<ReadonlyArray<Gathered>> =>
  Effect.suspend(() => pointer.resolve(gathering)).pipe(
    Effect.catchAll(({ message }) => Effect.succeed([failed(pointer.name, message)])),
    Effect.catchAllCause((cause) =>
      Cause.isInterrupted(cause)
        ? Effect.failCause(cause)
        : Effect.as(Effect.logError("a mention of a prompt failed unexpectedly", cause), [
            failed(pointer.name, `${quoted(pointer.name)} could not be read because of an internal error`)
          ])
    )
  )

const resolveAll = Effect.fnUntraced(function* (gathering: Gathering, pointers: ReadonlyArray<Pointer>) {
  const parts: Array<ExpandedPart> = []
  const seen = new Set<string>()
  let count = 0
  for (const [index, pointer] of pointers.entries()) {
    if (count >= limits.parts || index >= limits.mentions) {
      const why =
        `a prompt may refer to ${limits.parts} items; ${quoted(pointer.name)} and all later ones were not ` +
        "looked at"
      const { part } = failed(pointer.name, why)
      parts.push(pointer.source === undefined ? part : { ...part, source: pointer.source })
      break
    }
    const gathered = yield* total(pointer, gathering)
    if (gathered.length > 0) count++
    for (const { canonical, part } of gathered) {
      const key = `${part.kind} ${part.name}`
      if (canonical && seen.has(key)) continue
      seen.add(key)
      parts.push(pointer.source === undefined ? part : { ...part, source: pointer.source })
    }
  }
  return parts
})

/** Whether a prompt may refer to something; false is certain, and takes no look at the session. */
export const mayRefer = ({ agents = [], files = [], references = [], text }: PromptInput): boolean =>
  text.startsWith("/") || text.includes("@") || agents.length + files.length + references.length > 0

const command = /^\/([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?:\s+([\s\S]*))?$/

const make = Effect.gen(function* () {
  const agents = yield* Agents
  const templates = yield* Templates
  const references = yield* References
  const reader = yield* ResourceReader
  const pictures = yield* Pictures
  const workspaces = yield* Workspaces

  /** The text of the template that the prompt calls. An unknown command stays plain text. */
  const fromTemplate = Effect.fnUntraced(function* ({ location }: Session, prompt: PromptInput) {
    const [, name, words = ""] = command.exec(prompt.text) ?? []
    if (name === undefined) return undefined
    const found = yield* Effect.either(templates.find(name, location))
    if (Either.isLeft(found)) {
      // The file's path goes to the log only.
      return found.left.problem === undefined ? undefined : Either.left(`the file of template "${name}" is invalid`)
    }
    return Either.mapLeft(expandTemplate(found.right.body, words), ({ message }) => `template "${name}": ${message}`)
  })

  const expand = Effect.fn("PromptExpander.expand")(function* (session: Session, prompt: PromptInput) {
    const template = yield* fromTemplate(session, prompt)
    const text = template !== undefined && Either.isRight(template) ? template.right : undefined
    const given = [...named(prompt), ...attached(reader, prompt.files ?? [])]
    const covered = text === undefined ? isGiven(given) : () => false
    const words = new Set(text === undefined ? [] : findMentions(prompt.text).map((mention) => mention.text))
    // One more than the limit, so that the excess is reported.
    const mentions = findMentions(text ?? prompt.text, limits.mentions + 1)
      .filter((mention) => !covered(mention))
      .filter((mention, index, all) => index === all.findIndex((each) => each.text === mention.text))
      .map((mention) =>
        isHere(workspaces, session.location)
          ? mentionPointer(reader, mention, text === undefined || words.has(mention.text))
          : unreadPointer(mention, session.location)
      )
    const pointers = [...mentions, ...given]
    const problem: ReadonlyArray<ExpandedPart> =
      template !== undefined && Either.isLeft(template)
        ? [failed(prompt.text.split(/\s/)[0] ?? "/", template.left).part]
        : []
    if (pointers.length === 0) {
      return text === undefined && problem.length === 0
        ? undefined
        : { ...(text === undefined ? {} : { text }), parts: problem }
    }
    const { agent, id, location } = session
    const { directory } = location
    const parts = yield* resolveAll(
      {
        sessionID: id,
        directory,
        byPerson: session.parentID === undefined,
        agent: Option.getOrUndefined(yield* Effect.option(agents.get(agent, location))),
        agents: yield* agents.list(location),
        references,
        // Stored tool outputs are not available to mentions.
        files: makeLocationFiles({ directory, locate: () => Option.none(), references }),
        pictures,
        room: { text: limits.textBytes, media: limits.totalMediaBytes }
      },
      pointers
    )
    const all = [...problem, ...parts]
    return text === undefined && all.length === 0 ? undefined : { ...(text === undefined ? {} : { text }), parts: all }
  })

  /** A failed expansion never prevents admission. */
  const expandSafely: PromptExpander["Type"]["expand"] = (session, prompt) =>
    Effect.catchAllCause(expand(session, prompt), (cause) =>
      Cause.isInterrupted(cause)
        ? Effect.failCause(cause)
        : Effect.as(Effect.logError("the expansion of a prompt failed unexpectedly", cause), {
            parts: [failed("the prompt", "its references were not resolved because of an internal error").part]
          })
    )

  return PromptExpander.of({ expand: expandSafely })
})

export const layer: Layer.Layer<PromptExpander, never, Agents | Templates> = Layer.effect(PromptExpander, make)

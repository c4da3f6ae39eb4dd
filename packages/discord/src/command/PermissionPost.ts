/** Shows a permission that a call waits for, and its end. Pure. Spec: DI-44 in specs/discord.md. */
import type { OpenPermission } from "@daybook/api/group/PermissionsApi"
import type { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import type { Body, Button } from "../post/Post.ts"
import { line, publishable } from "../text/Publishable.ts"

const details = (subject: PermissionSubject): string => {
  switch (subject.type) {
    case "command":
      return [`in ${subject.folder}`, subject.command, ...subject.warnings.map((warning) => `⚠ ${warning}`)].join("\n")
    case "change":
      return subject.files
        .map(({ change, diff, movedTo, path }) =>
          [`${change} ${path}${movedTo === undefined ? "" : ` to ${movedTo}`}`, diff].join("\n")
        )
        .join("\n\n")
    case "read":
      return subject.pattern === undefined ? subject.path : `${subject.pattern} in ${subject.path}`
    case "external_directory":
      return [subject.folder, ...(subject.command === undefined ? [] : [subject.command])].join("\n")
    case "mcp":
      return `${subject.server}: ${subject.tool}\n${JSON.stringify(subject.input, null, 2)}`
    case "task":
      return [`${subject.agent}: ${subject.description}`, subject.prompt].join("\n")
    case "skill":
      return subject.name
    case "call":
      return JSON.stringify(subject.input ?? {}, null, 2)
  }
}

/** More than this is a file. */
const mostShown = 1_400

/** The time that is left, which Discord counts down. */
const limit = (expiresAt: number | undefined): string =>
  expiresAt === undefined ? "" : `\nRefused <t:${Math.floor(expiresAt / 1_000)}:R> without a decision.`

/** The question, in full. */
export const permissionBody = (
  { always, notes, permission, resources, subject, title, tool }: OpenPermission,
  secrets: ReadonlyArray<string>,
  expiresAt?: number
): Body => {
  const all = publishable([details(subject), ...resources, ...notes].join("\n"), secrets)
  const asks = `🔐 \`${line(tool, 40)}\` asks for **${line(permission, 60)}**: ${line(publishable(title, secrets), 300)}`
  const head = `${asks}${limit(expiresAt)}`
  const isLong = all.length > mostShown
  const once: Button = { action: "allow:once", label: "Allow once", style: "success" }
  const more: ReadonlyArray<Button> =
    always.length === 0
      ? []
      : [
          { action: "allow:session", label: "Allow in this session", style: "secondary" },
          { action: "allow:always", label: "Allow always", style: "secondary" }
        ]
  return {
    content: isLong ? `${head}\nAll of it is in the file.` : `${head}\n\`\`\`\n${all.replaceAll("```", "'''")}\n\`\`\``,
    ...(isLong ? { file: { name: "permission.txt", text: all } } : {}),
    buttons: [once, ...more, { action: "decline", label: "Decline", style: "danger" }]
  }
}

const words: Readonly<Record<string, string>> = {
  once: "✅ Allowed once",
  session: "✅ Allowed in this session",
  always: "✅ Allowed always",
  decline: "🛑 Declined"
}

/** A permission that was decided in Discord. */
export const decidedBody = (decision: string, by: string): Body => ({
  content: `🔐 ${words[decision] ?? decision} by <@${by}>`
})

/** A permission that closed elsewhere. */
export const closedBody: Body = { content: "🔐 Decided elsewhere, or the call has ended" }

/** A permission whose time has passed. */
export const expiredBody: Body = { content: "🔐 Not decided here in time" }

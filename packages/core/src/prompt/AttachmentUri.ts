/** Stands for the data of a prompt's own attachment, so that it is not stored twice. Spec: PX-13. */

export const attachmentUri = (index: number): string => `attachment:${index}`

/** The attachment that the URI stands for; undefined for any other URI. */
export const attachmentIndex = (uri: string): number | undefined => {
  const [, index] = /^attachment:(\d{1,9})$/.exec(uri) ?? []
  return index === undefined ? undefined : Number(index)
}

/** Which PDF documents are shown, and why the others are not. */
import { assert, it } from "@effect/vitest"
import { pdfFault } from "../../packages/core/src/picture/PictureFormat.ts"

const pdf = (rest: string) =>
  Buffer.concat([Buffer.from("%PDF-1.7\n%"), Buffer.from([0xe2, 0xe3, 10]), Buffer.from(rest)])
const whole = "1 0 obj\n<< /Type /Catalog >>\nendobj\nxref\n0 1\ntrailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"

it("PC-640: a document with its header and its end is shown, also with other bytes around it", () => {
  assert.isUndefined(pdfFault(pdf(whole)))
  assert.isUndefined(pdfFault(Buffer.concat([Buffer.from("\n\n"), pdf(whole), Buffer.alloc(100)])))
})

it("PC-640: without a header or an end it is not a valid document", () => {
  assert.match(pdfFault(pdf("not really a pdf\n")) ?? "", /not a valid PDF document/)
  assert.match(pdfFault(Buffer.from("<html>%%EOF")) ?? "", /not a valid PDF document/)
})

it("PC-640: a trailer that names an encryption locks the document", () => {
  assert.match(pdfFault(pdf(whole.replace("/Root 1 0 R", "/Root 1 0 R /Encrypt 3 0 R"))) ?? "", /password/)
  assert.match(pdfFault(pdf(whole.replace("/Root 1 0 R", "/Encrypt<</V 4>>/Root 1 0 R"))) ?? "", /password/)
  const stream =
    "7 0 obj\n<< /Type /XRef /Encrypt 5 0 R /Length 9 >>\nstream\n123\nendstream\nendobj\nstartxref\n9\n%%EOF"
  assert.match(pdfFault(pdf(stream)) ?? "", /password/)
})

it("PC-640: the word in a text or another object locks nothing", () => {
  const text = "2 0 obj\n<< /Length 30 >>\nstream\n(see /Encrypt 5 0 R)\nendstream\nendobj\n"
  assert.isUndefined(pdfFault(pdf(`${text}${whole}`)))
})

it("PC-640: a document of more than 32 MiB is not shown", () => {
  const large = Buffer.alloc(32 * 1024 * 1024 + 1)
  large.write("%PDF-1.7")
  assert.match(pdfFault(large) ?? "", /at most 33,554,432/)
})

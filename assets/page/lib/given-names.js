// Given names and titles by whom they usually mean, for a first guess at a voice; in lower case.

const FEMALE = `
  ada agnes alice alicia amanda amelia amy andrea angela anna anne annie ava barbara beatrice bella betty caroline catherine
  charlotte chloe christina clara claire claudia daisy diana dorothy edith elena elizabeth eleanor elise ella ellen emily emma
  erika esther eva eve evelyn fiona florence frances grace greta hannah harriet heidi helen helena ida ingrid irene iris isabel
  isabella jane janet jennifer jessica joan johanna josephine judith julia juliet karen kate katherine laura lena lily linda lisa
  louise lucy lydia maggie margaret maria marie martha mary matilda maya mia miriam molly nancy naomi natalie nina nora olivia
  paula penelope pippa rachel rebecca rosa rose ruby ruth sally sandra sara sarah siobhan sofia sophia sophie stella susan sylvia
  theresa ursula vera victoria violet zoe
  lady madam madame miss mother mrs ms queen princess duchess aunt grandmother girl woman nurse señora frau
`;
const MALE = `
  adam adrian alan albert alexander alfred andrew angus anthony arthur ben benjamin bernard bert boris brian bruno carl charles
  christian christopher colin daniel david dennis dominic donald douglas edgar edmund edward eric ernest felix finn francis frank
  franz fred frederick gabriel george gerald gilbert gordon graham gregory hamlet hans harold harry hector henry herbert howard
  hugh hugo ian isaac ivan jack jacob james jan jason john jonas jonathan joseph karl kevin klaus konrad lars leo leonard lewis
  liam louis lucas luke marcus mark martin matthew max michael miguel nathan nicholas noah norman oliver oscar otto patrick paul
  peter philip ralph raymond richard robert roger romeo ronald rory ross samuel sebastian simon stefan stephen steven stuart theo
  thaddeus theodore thomas tim timothy tobias tom victor vincent walter werner william wolfgang
  mr sir lord king prince duke father uncle grandfather boy man monsieur señor herr
`;
const words = (/** @type {string} */ list) => new Set(list.trim().split(/\s+/));
const GENDERS = /** @type {const} */ ([["female", words(FEMALE)], ["male", words(MALE)]]);

/**
 * Whom a character's name usually means: "female", "male", or "" where nothing tells.
 *
 * @param {string} name
 */
export function genderOfName(name) {
  for (const word of name.toLowerCase().split(/[\s.'’-]+/)) {
    const known = GENDERS.find(([, names]) => names.has(word));
    if (known) return known[0];
  }
  return "";
}

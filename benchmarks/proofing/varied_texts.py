"""Texts whose spoken length is hard to tell: short lines, headings, lists, numbers, tags, letters, long paragraphs."""

from __future__ import annotations

VARIED = (
    "Yes.",
    "No!",
    "Oh.",
    "Why?",
    "Stop.",
    "Hm.",
    "Go on.",
    "Thank you.",
    "Good night.",
    "Come here!",
    "Chapter One",
    "Chapter 12",
    "Part Two: The Return",
    "Contents",
    "Epilogue",
    "Introduction",
    "The End",
    "XIV",
    "1984",
    "3.14159",
    "A.",
    "I",
    "Wait …",
    "What?!",
    "Mr. Smith?",
    "OK.",
    "Chapter 7: In Which Nothing Happens, and Everyone Is Pleased About It",
    "Milk, eggs, butter, sugar, flour, salt, pepper, bread and cheese.",
    "1. Open the lid. 2. Fill in the water. 3. Press the button. 4. Wait.",
    "Apples: 12. Pears: 7. Plums: 305. Total: 324.",
    "Ingredients:\n\n- 200 g of flour\n- 3 eggs\n- 1/2 tsp. of salt\n- 250 ml of milk",
    "Call 555-0142 or 1-800-555-0199 between 9:00 and 17:30.",
    "In 1789, 1848, 1917 and 1989 the map of Europe changed.",
    "The total comes to $1,234,567.89, due on 03/04/2025.",
    "He ran 26.2 miles in 3:42:17, at about 8 min/mile.",
    "E = mc², or so they say.",
    "See https://www.example.com/a/b?c=1 for the details, or write to info@example.org.",
    "NASA, the FBI, the BBC and UNESCO all declined to comment.",
    "[whisper] Don't wake the baby.",
    "[fast] Run, they are right behind us, don't look back, just run!",
    "[slow] And then, one by one, the lights went out.",
    "I waited. [pause] Nothing happened. [pause] I waited a little longer.",
    "He counted to three. [pause:4s] Then he jumped.",
    "Ready? [pause:1500ms] Steady. [pause:1500ms] Go!",
    "[high] Look at me! [low] No, look at me.",
    "Well … I don't know … perhaps … no.",
    "No, no, no, no, no!",
    "Ha, ha, ha!",
    "Tick. Tock. Tick. Tock. Tick. Tock.",
    "“Who goes there?” “A friend.” “What friend?” “The last one you have.”",
    "He stopped—turned—and was gone.",
    "Supercalifragilisticexpialidocious and antidisestablishmentarianism are long words.",
    "The strengths of those months stretched through the sixth length.",
    "Rhythm.",
    "Twelfths!",
    "a e i o u",
    "Abracadabra, abracadabra, abracadabra.",
    (
        "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer the slings and arrows "
        "of outrageous fortune, or to take arms against a sea of troubles, and by opposing end them."
    ),
    (
        "Dear Sir or Madam,\n\nThank you for your letter of 12 May. We regret to inform you that the item is no "
        "longer available.\n\nYours faithfully,\n\nJ. B. Worthington"
    ),
    "Roses are red,\nViolets are blue,\nSugar is sweet,\nAnd so are you.",
    "§ 12. The tenant shall pay the rent on the 1st of each month (see p. 34, fig. 2, and cf. app. B).",
    "She lived at 221B Baker St., London NW1 6XE, from 1881 to 1904.",
    "Dr. J. R. R. Hall, M.D., Ph.D., came at 5 p.m.",
    "It was 40°C in the shade, 104°F, and the wind blew at 12 km/h.",
    "ISBN 978-3-16-148410-0",
    "Act III, Scene 2",
    "ROMEO: But soft! What light through yonder window breaks?",
    "Thirty-seven thousand four hundred and twelve soldiers, nine hundred horses, sixty-two guns.",
    (
        "The old lighthouse had stood on the point for two hundred years, and in all that time it had never once "
        "gone dark. Keepers came and went, some of them for a single winter, some for half a lifetime, and each "
        "left something behind: a shelf, a stove, a row of knots cut into the door frame. When the last of them "
        "walked down the path with his suitcase, nobody was there to see him go."
    ),
    (
        "“You might have told me,” she said, and turned to the window. He did not answer at once. Outside, a cart "
        "went by, loaded with hay, and a boy ran after it, shouting. “I might,” he said at last. “But would you "
        "have come?” She thought about it for a long time, so long that the clock in the hall struck twice. “No,” "
        "she said. “No, I don't suppose I would.”"
    ),
    (
        "The committee met on Tuesday to consider the proposal, which had been circulated in advance, and after a "
        "discussion lasting some three hours, during which several members expressed reservations about the cost, "
        "it was agreed, by a majority of seven to four, that the matter should be referred back to the working "
        "group for further study."
    ),
    (
        "She was tired. She was hungry. She was cold. She was a long way from home. And she was, for the first time "
        "in years, completely happy."
    ),
    "Mississippi, Massachusetts, Minnesota, Michigan, Missouri, Montana.",
    "zzz",
    "Brr! Shh! Psst!",
    "Ouch, that hurts, said the little bear.",
    "The cat sat on the mat.",
    "I am. You are. He is. We are. They are.",
    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",
    "1 2 3 4 5 6 7 8 9 10",
    "10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0!",
    "Fuchs und Hase sagten einander gute Nacht, und der Wald wurde still.",
    "C'est la vie, mon ami, n'est-ce pas?",
    (
        "Once upon a time there was a miller who had three sons. When he died, he left them his mill, his donkey "
        "and his cat."
    ),
    (
        "The quarterly results, published yesterday, show revenue of £4.2bn (up 7%), a margin of 18.4% and net debt "
        "of £310m."
    ),
)

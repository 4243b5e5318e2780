"""Sentences as in novels, non-fiction and podcasts, with names, numbers, contractions and hyphens: 60 of them."""

from __future__ import annotations

SENTENCES = """
The harbour lay under a thin mist, and one boat after the other came home before noon.
Eleanor put the letter back into the drawer and turned the key twice.
"You can't be serious," said Thaddeus, and he laughed until his eyes were wet.
By 1984 the mill had closed, and only 312 people still lived in the valley.
She'd never seen so many birds in one place, not even by the sea.
Captain Reyes folded the map along its old lines and slid it under his coat.
The train leaves at 7:45, so we should be at the station by half past seven.
It was a cold, clear morning, and the grass was white with frost.
Nobody knew where the old well-keeper had gone, and nobody dared to ask.
He paid $3.50 for a cup of coffee and left the change on the counter.
The doctor said that it wasn't broken, only badly bruised.
A long-haired dog lay across the doorway and wouldn't move for anyone.
In the second chapter we looked at how light behaves when it passes through glass.
Margaret had three brothers, two sisters and a great many opinions.
"Come in," called a voice from upstairs, "the door is never locked."
The recipe asks for two cups of flour, a pinch of salt and half a cup of butter.
On March 3rd, 1911, the river rose higher than anyone could remember.
They walked for hours without a word, each of them thinking about the same thing.
The software was rewritten from scratch, and it became twenty times faster.
Old Mr. Abernathy kept his money in a biscuit tin behind the stove.
I don't think we've met, but I have heard a great deal about you.
The road went up through the pines, then down again towards the lake.
About 40% of the students finished the course within six months.
There was a knock, soft and quick, and then the sound of running feet.
Siobhan wiped her hands on her apron and looked out of the window.
We'll need a rope, a lantern and somebody who isn't afraid of the dark.
The museum is open from Tuesday to Sunday, and children get in free.
When the music stopped, the whole room seemed to hold its breath.
He had been a teacher for thirty-one years, and he missed it every day.
The moon is about 384,000 kilometres away from the earth.
Snow had fallen during the night, and every sound was muffled.
"What did he say?" asked Oliver, who had only caught the last few words.
The first bridge was built of wood and burned down within a year.
She opened the box slowly, as if something might jump out of it.
Dr. Patel asked him to breathe in, hold it, and count to ten.
Most of the letters were short, but one of them ran to eleven pages.
The wind had changed, and with it the smell of the whole town.
Two men in grey coats stood under the street lamp and pretended to read.
If you heat the water too quickly, the sugar will not dissolve.
Nathaniel was the youngest, and therefore the last to be asked.
The committee met on the 5th floor, in a room without windows.
It isn't the price that worries me, it's the time it will take.
A single candle burned on the table, and its flame leaned towards the door.
The children ran ahead, shouting, and the old man followed with the basket.
Ms. Okafor answered all 26 questions without looking at her notes.
Every evening at six o'clock the ferry crossed to the other side.
We had planned to stay for a week, and we stayed for nine years.
The garden was overgrown, but the roses were still in bloom.
"Nothing is lost," she told him, "until you stop looking for it."
The experiment failed twice before anyone noticed the loose wire.
Isabella learned to swim in the river behind her grandmother's house.
The report has 120 pages, and only four of them matter.
He whistled as he worked, always the same tune, always a little flat.
From the tower you could see as far as the coast on a good day.
The queen wrote to her cousin in Vienna, and he never replied.
Good evening, and welcome to another episode of our little programme.
The bakery on the corner sells bread, cakes and very strong tea.
My grandfather's watch still runs, although it loses a minute each day.
They had agreed on everything except the colour of the front door.
And so, at last, the two of them set out along the road to the north.
""".strip().splitlines()

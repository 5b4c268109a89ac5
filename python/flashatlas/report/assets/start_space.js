// Start of the page of a study.

startFurniture();
startChoice();
startRuns();
startParallel();
startOver();
startHeat();
startFront();
choose(); // makes every view for the first time
startCharts();
